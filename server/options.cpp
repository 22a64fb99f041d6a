#include "server/options.hpp"

#include <toml++/toml.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <map>

#include "server/options_table.hpp"
#include "workers/io/settings.hpp"

namespace quasi::server {
namespace {

std::vector<std::string> known_keys() {
  std::vector<std::string> keys;
  for (const Entry& entry : entries()) keys.push_back(entry.key);
  return keys;
}

const Entry& entry_of(const std::string& key, const std::string& source) {
  for (const Entry& entry : entries())
    if (entry.key == key) return entry;
  const std::string message = unknown_key_message(key, source, known_keys());
  throw BadConfiguration(message +
                         (message.ends_with('?') ? "" : "; quasi-server --help lists the keys"));
}

void set(CommandLine& line, const std::string& key, const std::string& text,
         const std::string& source) {
  const Entry& entry = entry_of(key, source);
  try {
    entry.set(line.options, text);
  } catch (const BadConfiguration& error) {
    throw BadConfiguration(source + ": " + error.what());
  }
  line.sources[key] = source;
}

std::string to_text(const toml::node& node, const std::string& key, const std::string& source) {
  if (const auto* list = node.as_array()) {
    std::string text;
    for (const toml::node& item : *list)
      text += (text.empty() ? "" : ",") + to_text(item, key, source);
    return text;
  }
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  if (const auto whole = node.value_exact<std::int64_t>()) return std::to_string(*whole);
  if (const auto real = node.value_exact<double>()) return std::to_string(*real);
  throw BadConfiguration(source + ": " + key + " must be a text, a number, true or false");
}

void read_file(CommandLine& line, const std::string& path) {
  toml::table table;
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    throw BadConfiguration(path + ":" + std::to_string(error.source().begin.line) + ": " +
                           std::string(error.description()));
  }
  for (const auto& [key, node] : table)
    set(line, std::string(key.str()), to_text(node, std::string(key.str()), path), path);
}

std::string environment_name(const std::string& key) {
  std::string name = "QUASI_SERVER_";
  for (const char c : key) name.push_back(static_cast<char>(std::toupper(c)));
  return name;
}

std::string flag_name(const std::string& key) {
  std::string name = "--" + key;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// The error text for words that are not flags of this program.
std::string unexpected(const std::vector<std::string>& words) {
  const auto flag = std::find_if(words.begin(), words.end(),
                                 [](const std::string& word) { return word.starts_with("--"); });
  if (flag == words.end()) return "unexpected: '" + words.front() + "'";
  std::string key = flag->substr(2, flag->find('=') - 2);
  std::replace(key.begin(), key.end(), '-', '_');
  const std::string nearest = nearest_name(key, known_keys());
  return "no flag '" + flag->substr(0, flag->find('=')) + "'" +
         (nearest.empty() ? "" : "; did you mean '" + flag_name(nearest) + "'?");
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
    CLI::Option* flag = app.add_option(flag_name(entry.key), flags[entry.key],
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
  if (!config.empty())
    read_file(result, config);
  else if (std::filesystem::exists("/etc/quasi/server.toml"))
    read_file(result, "/etc/quasi/server.toml");
  for (const Entry& entry : entries())
    if (const char* value = std::getenv(environment_name(entry.key).c_str()))
      set(result, entry.key, value, "environment " + environment_name(entry.key));
  for (const Entry& entry : entries())
    if (app.count(flag_name(entry.key)) > 0)
      set(result, entry.key,
          flags[entry.key].empty() && is_switch(entry) ? "true" : flags[entry.key],
          "flag " + flag_name(entry.key));

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
  for (const Entry& entry : entries()) {
    const auto source = line.sources.find(entry.key);
    out << entry.key << " = " << entry.show(line.options) << "  # "
        << (source == line.sources.end() ? "built-in" : source->second) << '\n';
  }
}

}  // namespace quasi::server
