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

Failure unknown_help_failure(const std::string& word, const std::vector<std::string>& commands,
                             const std::vector<std::string>& keys) {
  constexpr std::size_t kMostListed = 8, kShortestPart = 3;
  std::vector<std::string> known = commands;
  known.insert(known.end(), keys.begin(), keys.end());
  std::string similar;
  std::size_t listed = 0;
  for (const std::string& name : known)
    // A name with its table would repeat the name alone.
    if (word.size() >= kShortestPart && name.find('.') == std::string::npos &&
        name.find(word) != std::string::npos && listed++ < kMostListed)
      similar += (similar.empty() ? "" : ", ") + name;
  if (listed > kMostListed) similar += ", …";
  return {ExitStatus::kUsage,
          "no command and no key '" + word + "'" +
              (similar.empty() ? suggestion(nearest_name(word, known)) : ""),
          similar.empty() ? "see: quasi help" : "names with this word: " + similar};
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
