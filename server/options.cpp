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

#include "workers/io/settings.hpp"

namespace quasi::server {
namespace {

/// One thing that can be set: its key in the file, how it is read and shown. The flag is --key with
/// dashes, the environment variable QUASI_SERVER_KEY.
struct Entry {
  std::string key;
  std::string help;
  std::string unit = "TEXT";                                    ///< what a value is, for --help
  std::function<void(ServerOptions&, const std::string&)> set;  ///< from text
  std::function<std::string(const ServerOptions&)> show;        ///< as TOML
};

std::string shown(bool value) { return value ? "true" : "false"; }
std::string shown(const std::string& value) { return "\"" + value + "\""; }

[[noreturn]] void bad(const std::string& key, const std::string& value, const std::string& rule) {
  throw BadConfiguration(key + ": must be " + rule + ", got \"" + value + "\"");
}

std::int64_t to_integer(const std::string& key, const std::string& text, std::int64_t least,
                        std::int64_t most) {
  const std::string rule =
      "a whole number in " + std::to_string(least) + "..." + std::to_string(most);
  std::size_t used = 0;
  std::int64_t value = 0;
  try {
    value = std::stoll(text, &used);
  } catch (const std::exception&) {
    bad(key, text, rule);
  }
  if (used != text.size() || value < least || value > most) bad(key, text, rule);
  return value;
}

template <class Get>
Entry integer(std::string key, std::string help, std::int64_t least, std::int64_t most, Get get) {
  return {.key = key,
          .help = std::move(help),
          .unit = "N",
          .set =
              [key, least, most, get](ServerOptions& options, const std::string& text) {
                auto& target = get(options);
                target = static_cast<std::remove_reference_t<decltype(target)>>(
                    to_integer(key, text, least, most));
              },
          .show =
              [get](const ServerOptions& options) {
                return std::to_string(get(const_cast<ServerOptions&>(options)));
              }};
}

/// Durations are given in seconds, with a fraction if wanted.
template <class Get>
Entry seconds(std::string key, std::string help, double least, double most, Get get) {
  return {.key = key,
          .help = std::move(help),
          .unit = "SECONDS",
          .set =
              [key, least, most, get](ServerOptions& options, const std::string& text) {
                const auto trimmed = [](double value) {
                  std::string number = std::to_string(value);
                  while (number.ends_with('0')) number.pop_back();
                  if (number.ends_with('.')) number.pop_back();
                  return number;
                };
                const std::string rule = "seconds in " + trimmed(least) + "..." + trimmed(most);
                std::size_t used = 0;
                double value = 0;
                try {
                  value = std::stod(text, &used);
                } catch (const std::exception&) {
                  bad(key, text, rule);
                }
                if (used != text.size() || !(value >= least && value <= most)) bad(key, text, rule);
                get(options) = static_cast<std::int64_t>(value * 1000.0 + 0.5);
              },
          .show =
              [get](const ServerOptions& options) {
                const std::int64_t ms = get(const_cast<ServerOptions&>(options));
                std::string number = std::to_string(ms / 1000);
                if (ms % 1000 != 0) {
                  std::string fraction = std::to_string(1000 + ms % 1000).substr(1);
                  while (fraction.ends_with('0')) fraction.pop_back();
                  number += "." + fraction;
                }
                return number;
              }};
}

template <class Get>
Entry boolean(std::string key, std::string help, Get get) {
  return {.key = key,
          .help = std::move(help),
          .unit = "[BOOL]",
          .set =
              [key, get](ServerOptions& options, const std::string& text) {
                if (text != "true" && text != "false") bad(key, text, "true or false");
                get(options) = text == "true";
              },
          .show =
              [get](const ServerOptions& options) {
                return shown(static_cast<bool>(get(const_cast<ServerOptions&>(options))));
              }};
}

const std::vector<Entry>& entries() {
  using O = ServerOptions;
  constexpr double kDay = 86'400;
  static const std::vector<Entry> kEntries = {
      {.key = "data_directory",
       .help = "where everything is kept; owned by one server",
       .set =
           [](O& o, const std::string& text) {
             if (text.empty()) bad("data_directory", text, "a path");
             o.data_directory = text;
           },
       .show = [](const O& o) { return shown(o.data_directory); }},
      {.key = "listen",
       .help = "addresses, separated by commas: 127.0.0.1:7460, [::1]:7460, unix:/path",
       .set =
           [](O& o, const std::string& text) {
             o.listen.clear();
             for (std::size_t start = 0; start <= text.size();) {
               const std::size_t end = std::min(text.find(',', start), text.size());
               const std::string address = text.substr(start, end - start);
               require_local(address);
               o.listen.push_back(address);
               start = end + 1;
             }
           },
       .show =
           [](const O& o) {
             std::string list;
             for (const std::string& address : o.listen)
               list += (list.empty() ? "" : ", ") + shown(address);
             return "[" + list + "]";
           }},
      boolean(
          "enable_test_work", "accept jobs of kind test, for trying the service out",
          [](O & o) -> auto& { return o.api.enable_test_work; }),
      boolean(
          "reflection", "answer gRPC server reflection",
          [](O & o) -> auto& { return o.reflection; }),
      boolean(
          "allow_network_file_system", "at your own risk",
          [](O & o) -> auto& { return o.allow_network_file_system; }),
      {.key = "log_level",
       .help = "debug, info, warning or error",
       .set =
           [](O& o, const std::string& text) {
             if (text != "debug" && text != "info" && text != "warning" && text != "error")
               bad("log_level", text, "one of debug, info, warning, error");
             o.log_level = text;
           },
       .show = [](const O& o) { return shown(o.log_level); }},
      seconds(
          "lease_ttl", "a worker not heard of for so long has lost its jobs", 0.5, 3'600,
          [](O & o) -> auto& { return o.queue.lease_ttl_ms; }),
      seconds(
          "heartbeat_interval", "how often workers report; at most a third of lease_ttl counts",
          0.1, 1'200, [](O & o) -> auto& { return o.api.heartbeat_interval_ms; }),
      seconds(
          "restart_grace", "beside lease_ttl, for leases that were open when the server stopped", 0,
          3'600, [](O & o) -> auto& { return o.queue.restart_grace_ms; }),
      seconds(
          "requeue_delay", "before a job whose lease expired is granted again", 0, 3'600,
          [](O & o) -> auto& { return o.queue.requeue_delay_ms; }),
      seconds(
          "retry_back_off", "after the first failed attempt; doubles with each", 0, 3'600,
          [](O & o) -> auto& { return o.queue.retry_back_off_ms; }),
      seconds(
          "default_max_runtime", "of jobs that do not say", 1, 30 * kDay,
          [](O & o) -> auto& { return o.queue.default_max_runtime_ms; }),
      seconds(
          "stage_timeout", "for a worker to fetch a job's inputs", 1, kDay,
          [](O & o) -> auto& { return o.api.stage_timeout_ms; }),
      seconds(
          "orphan_grace", "a worker without contact makes checkpoints after this", 1, 30 * kDay,
          [](O & o) -> auto& { return o.api.orphan_grace_ms; }),
      seconds(
          "orphan_limit", "a worker without contact stops its children after this", 1, 30 * kDay,
          [](O & o) -> auto& { return o.api.orphan_limit_ms; }),
      seconds(
          "slow_reader", "a download that takes nothing for so long is cut", 1, kDay,
          [](O & o) -> auto& { return o.api.slow_reader_ms; }),
      seconds(
          "bookmark_interval", "an idle watch hears at least so often", 0.1, kDay,
          [](O & o) -> auto& { return o.api.bookmark_ms; }),
      seconds(
          "blob_grace", "files that nothing refers to are kept so long", 0, 365 * kDay,
          [](O & o) -> auto& { return o.retention.blob_grace_ms; }),
      seconds(
          "upload_idle", "broken uploads are kept so long", 1, 365 * kDay,
          [](O & o) -> auto& { return o.retention.upload_idle_ms; }),
      seconds(
          "passing_events", "progress, log and checkpoint events are kept so long", 60, 365 * kDay,
          [](O & o) -> auto& { return o.retention.passing_events_ms; }),
      seconds(
          "scrub_period", "every file is read and hashed again once in so long", 60, 3650 * kDay,
          [](O & o) -> auto& { return o.scrub.period_ms; }),
      integer(
          "scrub_bytes_per_second", "at which that reads at most", 1 << 20, std::int64_t{1} << 40,
          [](O & o) -> auto& { return o.scrub.bytes_per_second; }),
      seconds(
          "garbage_interval", "between collections", 1, kDay,
          [](O & o) -> auto& { return o.garbage_interval_ms; }),
      seconds(
          "shutdown_time", "for calls in hand when the server is asked to stop", 0, 600,
          [](O & o) -> auto& { return o.shutdown_ms; }),
      integer(
          "storage_low_bytes", "below so much free space new work is refused", 0,
          std::numeric_limits<std::int64_t>::max(),
          [](O & o) -> auto& { return o.api.storage_low_bytes; }),
      integer(
          "readers", "threads that read the database", 1, 64,
          [](O & o) -> auto& { return o.readers; }),
      integer(
          "file_threads", "threads that read, write and hash files", 1, 64,
          [](O & o) -> auto& { return o.file_threads; }),
  };
  return kEntries;
}

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

/// What to say of words that are no flags of this program.
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

}  // namespace

void require_local(const std::string& address) {
  const auto refuse = [&](const std::string& why) {
    throw BadConfiguration(
        "listen: \"" + address + "\" " + why +
        "; quasi-server has no users and no TLS yet, so whoever reaches it may submit jobs and "
        "read "
        "results. It serves loopback addresses (127.0.0.1:PORT, [::1]:PORT, localhost:PORT) and "
        "Unix sockets (unix:/path) only; reach it from elsewhere through an SSH tunnel");
  };
  if (address.starts_with("unix:")) {
    if (address.size() == 5) refuse("names no path");
    return;
  }
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size()) refuse("has no port");
  const std::string host = address.substr(0, colon);
  const std::string port = address.substr(colon + 1);
  if (port.size() > 5 ||
      !std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; }) ||
      std::stoi(port) > 65'535)
    refuse("has no port in 0...65535");
  if (host == "localhost" || host == "[::1]") return;
  // The whole of 127/8 is loopback; anything that is not four plain numbers is not taken for it.
  int numbers = 0;
  int value = -1;
  bool sound = true;
  int first = -1;
  for (std::size_t i = 0; i <= host.size(); ++i) {
    if (i == host.size() || host[i] == '.') {
      sound = sound && value >= 0 && value <= 255;
      if (numbers++ == 0) first = value;
      value = -1;
    } else if (host[i] >= '0' && host[i] <= '9' && value < 1'000) {
      value = std::max(value, 0) * 10 + (host[i] - '0');
    } else {
      sound = false;
    }
  }
  if (!sound || numbers != 4 || first != 127) refuse("is not a loopback address");
}

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLine result;
  CLI::App app{"The front server of Quasi: takes jobs, keeps them, hands them to workers."};
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
  // "--enable-test-work" alone means true.
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
