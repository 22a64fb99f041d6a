#include "client/input/unknown_words.hpp"

#include "workers/io/settings.hpp"

namespace quasi::client {
namespace {

std::string suggestion(const std::string& nearest) {
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

}  // namespace

Failure unknown_command_failure(const std::string& name, const std::vector<std::string>& known) {
  return {ExitStatus::kUsage, "no command '" + name + "'" + suggestion(nearest_name(name, known)),
          "see: quasi help"};
}

Failure unknown_flag_failure(const std::string& flag, const std::string& command,
                             const std::vector<std::string>& known) {
  // The leading dashes are left out, because they would make every short name a near one.
  std::vector<std::string> names;
  for (const std::string& each : known) names.push_back(each.substr(2));
  std::string nearest = nearest_name(flag.substr(2), names);
  if (!nearest.empty()) nearest.insert(0, "--");
  return {ExitStatus::kUsage,
          "no flag '" + flag + "'" + (command.empty() ? "" : " in quasi " + command) +
              suggestion(nearest),
          "see: quasi help" + (command.empty() ? "" : " " + command)};
}

}  // namespace quasi::client
