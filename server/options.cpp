#include "server/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>

#include "proto/wire/config/config_sources.hpp"
#include "server/options_table.hpp"

namespace quasi::server {
namespace {

std::vector<std::string> known_keys() {
  std::vector<std::string> keys;
  for (const Entry& entry : entries()) keys.push_back(entry.key);
  return keys;
}

const Entry& entry_of(const std::string& key) {
  const auto& all = entries();
  return *std::find_if(all.begin(), all.end(),
                       [&](const Entry& entry) { return entry.key == key; });
}

/// Sets each value that is given anywhere.
void set_all(CommandLine& line, const std::string& file,
             const std::map<std::string, std::string>& flags) {
  std::vector<wire::ConfigText> texts;
  try {
    texts = wire::config_texts(
        {.program = "quasi-server", .file = file, .keys = known_keys(), .flags = flags});
  } catch (const wire::ConfigProblem& problem) {
    throw BadConfiguration(problem.what());
  }
  for (const wire::ConfigText& given : texts) {
    try {
      entry_of(given.key).set(line.options, given.text);
    } catch (const BadConfiguration& error) {
      throw BadConfiguration(given.source + ": " + error.what());
    }
    line.sources[given.key] = given.source;
  }
}

/// The error text for words that are not flags of this program.
std::string unexpected(const std::vector<std::string>& words) {
  const auto flag = std::find_if(words.begin(), words.end(),
                                 [](const std::string& word) { return word.starts_with("--"); });
  if (flag == words.end()) return "unexpected: '" + words.front() + "'";
  const std::string name = flag->substr(0, flag->find('='));
  const std::string nearest = wire::nearest_config_flag(name, known_keys());
  return "no flag '" + name + "'" + (nearest.empty() ? "" : "; did you mean '" + nearest + "'?");
}

/// Checks the files for TLS. Without them, refuses addresses beyond this machine.
void check_tls(const CommandLine& line) {
  if (tls_server_credentials(line.options.tls)) return;
  const auto require = [&](const std::string& key, const std::vector<std::string>& addresses) {
    try {
      for (const std::string& address : addresses) require_local(address);
    } catch (const BadConfiguration& error) {
      const auto source = line.sources.find(key);
      throw BadConfiguration((source == line.sources.end() ? "" : source->second + ": ") +
                             error.what());
    }
  };
  require("listen", line.options.listen);
  require("worker_listen", line.options.worker_listen);
  if (!line.options.metrics_listen.empty())
    require("metrics_listen", {line.options.metrics_listen});
}

constexpr char kAbout[] =
    "The front server of Quasi. Commands of an administrator, each with --help: quasi-server init, "
    "backup, restore, check.";

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLine result;
  CLI::App app{kAbout};
  app.set_version_flag("--version", std::string("quasi-server ") + QUASI_VERSION);
  std::string config;
  bool print = false;
  bool check = false;
  bool ask = false;
  app.add_option("--config", config, "TOML file; otherwise /etc/quasi/server.toml if it exists");
  app.add_flag("--print-config", print, "Show each value and where it came from, then exit");
  app.add_flag("--check-config", check, "Check the configuration, then exit (78 if it is wrong)");
  app.add_flag("--probe", ask,
               "Ask the server at the first address of `listen` for its health, then exit (0 if it "
               "serves, else 75)");
  std::map<std::string, std::string> flags;
  // "--enable-test-work" without a value means true.
  const auto is_switch = [](const Entry& entry) {
    const std::string shown = entry.show(ServerOptions());
    return shown == "true" || shown == "false";
  };
  for (const Entry& entry : entries()) {
    CLI::Option* flag = app.add_option(wire::config_flag(entry.key), flags[entry.key],
                                       entry.help + " (" + entry.show(ServerOptions()) + ")")
                            ->type_name(entry.unit);
    if (is_switch(entry)) flag->expected(0, 1);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    std::cerr << "quasi-server: " << unexpected(app.remaining()) << "\nsee: quasi-server --help\n";
    result.action = Action::kExit;
    result.exit_status = 2;
    return result;
  } catch (const CLI::ParseError& error) {
    result.action = Action::kExit;
    result.exit_status = app.exit(error) == 0 ? 0 : 2;
    return result;
  }

  ServerOptions& options = result.options;
  for (const Entry& entry : entries()) {
    if (app.count(wire::config_flag(entry.key)) == 0)
      flags.erase(entry.key);
    else if (flags[entry.key].empty() && is_switch(entry))
      flags[entry.key] = "true";
  }
  set_all(result, config, flags);

  if (options.listen.empty())
    throw BadConfiguration(
        "listen: must name an address at which clients are served, got \"none\"");
  for (const std::string& address : options.worker_listen)
    if (!address.ends_with(":0") &&
        std::count(options.listen.begin(), options.listen.end(), address) > 0)
      throw BadConfiguration("worker_listen: " + address +
                             " is an address of `listen` too; give workers one of their own");
  check_tls(result);
  options.api.lease_ttl_ms = options.queue.lease_ttl_ms;
  options.api.heartbeat_interval_ms =
      std::min(options.api.heartbeat_interval_ms, options.queue.lease_ttl_ms / 3);
  if (print) result.action = Action::kPrintConfig;
  if (check) result.action = Action::kCheckConfig;
  if (ask) result.action = Action::kProbe;
  return result;
}

void print_configuration(const CommandLine& line, std::ostream& out) {
  for (const Entry& entry : entries())
    out << wire::config_line(entry.key, entry.show(line.options), line.sources);
}

}  // namespace quasi::server
