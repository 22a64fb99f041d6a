#include "client/input/config.hpp"

#include <toml++/toml.h>
#include <map>

#include "client/failure.hpp"
#include "client/input/toml_source.hpp"
#include "client/session/durable_file.hpp"
#include "client/views/readable.hpp"
#include "proto/wire/channel.hpp"
#include "workers/io/settings.hpp"

namespace quasi::client {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kConfigLimitBytes = 1 << 20;

struct ContextEntry {
  Configured<std::string> address;
  std::optional<Configured<double>> timeout_s;
  std::optional<Configured<std::string>> token_file;
  std::optional<Configured<std::string>> ca;
};

/// The values from the files. Later files override earlier ones.
struct FromFiles {
  std::optional<Configured<std::string>> context;
  std::optional<Configured<double>> timeout_s;
  std::map<std::string, ContextEntry> contexts;
};

/// Refuses addresses that gRPC would resolve as names and then retry without an answer.
void require_address(const Configured<std::string>& address) {
  if (wire::is_server_address(address.value)) return;
  throw Failure(ExitStatus::kInvalidInput,
                "'" + address.value + "' is not the address of a server (" + address.origin + ")",
                "write HOST:PORT, like localhost:7460, or unix:/PATH");
}

[[noreturn]] void refuse(const fs::path& file, const toml::node& node, const std::string& what) {
  throw Failure(
      ExitStatus::kInvalidInput, where(file, node) + ": " + what,
      "see 'Configuration' in docs/reference/cli.md, or check with: quasi --print-config");
}

std::string text_of(const fs::path& file, const std::string& key, const toml::node& node) {
  if (const auto value = node.value_exact<std::string>(); value && !value->empty()) return *value;
  refuse(file, node, "'" + key + "' must be a text in quotes that is not empty");
}

double seconds_of(const fs::path& file, const std::string& key, const toml::node& node) {
  const auto seconds = parse_duration_seconds(text_of(file, key, node));
  if (!seconds || *seconds <= 0.0)
    refuse(file, node, "'" + key + "' must be a time above zero like \"15s\" or \"2m\"");
  return *seconds;
}

void read_context(const fs::path& file, const std::string& name, const toml::table& table,
                  FromFiles& found) {
  ContextEntry entry;
  bool has_address = false;
  for (const auto& [key, node] : table) {
    if (key == "address") {
      entry.address = {text_of(file, "address", node), where(file, node)};
      has_address = true;
    } else if (key == "timeout") {
      entry.timeout_s = {seconds_of(file, "timeout", node), where(file, node)};
    } else if (key == "token_file") {
      entry.token_file = {text_of(file, "token_file", node), where(file, node)};
    } else if (key == "ca") {
      entry.ca = {text_of(file, "ca", node), where(file, node)};
    } else {
      refuse(file, node,
             unknown_key_message(key.str(), "[context." + name + "]",
                                 {"address", "timeout", "token_file", "ca"}));
    }
  }
  if (!has_address) refuse(file, table, "[context." + name + "] has no 'address'");
  found.contexts[name] = entry;
}

void read_file(const fs::path& file, FromFiles& found) {
  const toml::table table = parse_toml(file, read_whole(file, kConfigLimitBytes));
  for (const auto& [key, node] : table) {
    if (key == "timeout") {
      found.timeout_s = {seconds_of(file, "timeout", node), where(file, node)};
    } else if (key == "context" && node.is_table()) {
      for (const auto& [name, context] : *node.as_table()) {
        if (name == "use" && context.is_string()) {
          found.context = {text_of(file, "context.use", context), where(file, context)};
        } else if (!context.is_table()) {
          refuse(file, context,
                 "'context." + std::string(name.str()) + "' must be a table: [context." +
                     std::string(name.str()) + "]");
        } else {
          read_context(file, std::string(name.str()), *context.as_table(), found);
        }
      }
    } else if (key == "context") {
      refuse(file, node,
             "'context' must be a table; name the context to use by 'use = \"lab\"' in [context]");
    } else {
      refuse(file, node, unknown_key_message(key.str(), file.string(), {"context", "timeout"}));
    }
  }
}

std::optional<std::string> variable(const Environment& environment, const char* name) {
  const char* value = environment(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

double seconds_or_refuse(const std::string& text, const std::string& origin) {
  const auto seconds = parse_duration_seconds(text);
  if (!seconds || *seconds <= 0.0)
    throw Failure(ExitStatus::kUsage, origin + ": '" + text + "' is not a time above zero",
                  "write it like 15s, 2m or 1h30m");
  return *seconds;
}

fs::path home_relative(const Environment& environment, const char* xdg, const char* below_home) {
  if (const auto base = variable(environment, xdg)) return fs::path(*base) / "quasi";
  if (const auto home = variable(environment, "HOME"))
    return fs::path(*home) / below_home / "quasi";
  return {};
}

}  // namespace

std::vector<fs::path> config_files(const Environment& environment) {
  if (const auto only = variable(environment, "QUASI_CONFIG")) return {*only};
  std::vector<fs::path> files{"/etc/quasi/client.toml"};
  const fs::path own = home_relative(environment, "XDG_CONFIG_HOME", ".config");
  if (!own.empty()) files.push_back(own / "client.toml");
  std::erase_if(files, [](const fs::path& file) {
    std::error_code ignored;
    return !fs::exists(file, ignored);
  });
  return files;
}

fs::path own_config_file(const Environment& environment) {
  if (const auto only = variable(environment, "QUASI_CONFIG")) return *only;
  const fs::path own = home_relative(environment, "XDG_CONFIG_HOME", ".config");
  if (own.empty())
    throw Failure(ExitStatus::kLocalFile, "no home directory is known",
                  "set HOME, or name a file by QUASI_CONFIG");
  return own / "client.toml";
}

Config load_config(const std::vector<fs::path>& files, const Environment& environment,
                   const ConfigFlags& flags) {
  FromFiles found;
  for (const fs::path& file : files) read_file(file, found);

  Config config;
  if (found.timeout_s) config.timeout_s = *found.timeout_s;
  config.address.value = wire::default_address(environment("XDG_RUNTIME_DIR"));
  bool context_chosen = false;
  if (found.context) {
    config.context = *found.context;
    context_chosen = true;
  }
  if (const auto name = variable(environment, "QUASI_CONTEXT")) {
    config.context = {*name, "QUASI_CONTEXT"};
    context_chosen = true;
  }
  if (flags.context) {
    config.context = {*flags.context, "--context"};
    context_chosen = true;
  }
  const auto entry = found.contexts.find(config.context.value);
  if (entry != found.contexts.end()) {
    config.address = entry->second.address;
    if (entry->second.timeout_s) config.timeout_s = *entry->second.timeout_s;
    if (entry->second.token_file) config.token_file = *entry->second.token_file;
    if (entry->second.ca) config.ca = *entry->second.ca;
  } else if (context_chosen) {
    std::vector<std::string> known;
    for (const auto& [name, context] : found.contexts) known.push_back(name);
    std::string list;
    for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
    const std::string nearest = nearest_name(config.context.value, known);
    throw Failure(ExitStatus::kInvalidInput,
                  "no context '" + config.context.value + "' (named by " + config.context.origin +
                      ")" + (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"),
                  list.empty() ? "add [context." + config.context.value +
                                     "] with an address to ~/.config/quasi/client.toml"
                               : "known contexts: " + list);
  }
  if (const auto server = variable(environment, "QUASI_SERVER"))
    config.address = {*server, "QUASI_SERVER"};
  if (flags.server) config.address = {*flags.server, "--server"};
  require_address(config.address);
  if (const auto file = variable(environment, "QUASI_TOKEN_FILE"))
    config.token_file = {*file, "QUASI_TOKEN_FILE"};
  if (const auto file = variable(environment, "QUASI_CA")) config.ca = {*file, "QUASI_CA"};
  if (const auto timeout = variable(environment, "QUASI_TIMEOUT"))
    config.timeout_s = {seconds_or_refuse(*timeout, "QUASI_TIMEOUT"), "QUASI_TIMEOUT"};
  if (flags.timeout)
    config.timeout_s = {seconds_or_refuse(*flags.timeout, "--timeout"), "--timeout"};

  config.state_directory = {home_relative(environment, "XDG_STATE_HOME", ".local/state"),
                            "built in"};
  if (const auto state = variable(environment, "QUASI_STATE"))
    config.state_directory = {*state, "QUASI_STATE"};
  return config;
}

std::string describe(const Config& config) {
  const auto line = [](const std::string& key, const std::string& value, const std::string& from) {
    return key + " = " + value + "   # " + from + "\n";
  };
  return line("context", '"' + config.context.value + '"', config.context.origin) +
         line("address", '"' + config.address.value + '"', config.address.origin) +
         line("timeout", '"' + readable_seconds(config.timeout_s.value) + '"',
              config.timeout_s.origin) +
         line("token_file", '"' + config.token_file.value + '"', config.token_file.origin) +
         line("ca", '"' + config.ca.value + '"', config.ca.origin) +
         line("state", '"' + config.state_directory.value.string() + '"',
              config.state_directory.origin);
}

}  // namespace quasi::client
