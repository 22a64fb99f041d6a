#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace quasi::client {

/// Reads one environment variable; nullptr if it is unset. Tests pass a function of their own.
using Environment = std::function<const char*(const char*)>;

/// One value of the configuration with its source.
template <typename T>
struct Configured {
  T value;
  std::string origin = "built in";
};

/// The settings that a command needs before it calls a server.
struct Config {
  Configured<std::string> context{"default"};
  Configured<std::string> address;     ///< host:port or unix:/path; wire::default_address otherwise
  Configured<double> timeout_s{15.0};  ///< time limit of one unary call
  Configured<std::string> token_file;  ///< file with the token; "": none
  Configured<std::string> ca;          ///< file with the CA of the server; "": plain text
  Configured<std::filesystem::path>
      state_directory;  ///< journal of submissions, ids of the newest submission
};

/// Settings from the command line; absent means "not given".
struct ConfigFlags {
  std::optional<std::string> context;
  std::optional<std::string> server;
  std::optional<std::string> timeout;
};

/// The configuration files in increasing rank: /etc/quasi/client.toml, then
/// ~/.config/quasi/client.toml (or XDG_CONFIG_HOME). QUASI_CONFIG names one file that replaces
/// both.
std::vector<std::filesystem::path> config_files(const Environment& environment);

/// The configuration file of this user, whether it exists or not: QUASI_CONFIG, or client.toml
/// below
/// ~/.config/quasi. @throws Failure if neither is known.
std::filesystem::path own_config_file(const Environment& environment);

/// Reads the configuration. Later sources win: built-in values, files, environment variables
/// (QUASI_CONTEXT, QUASI_SERVER, QUASI_TIMEOUT, QUASI_TOKEN_FILE, QUASI_CA, QUASI_STATE), flags.
/// An example of a file:
///
///     timeout = "15s"
///     [context]
///     use = "lab"                # the context to use by default
///     [context.lab]
///     address = "gpu.example.org:7460"
///     ca = "/home/ada/.config/quasi/lab.ca.pem"
///     token_file = "/home/ada/.config/quasi/lab.token"
///
/// @throws Failure (kInvalidInput) naming file, line and key; an unknown key with the nearest known
/// key.
Config load_config(const std::vector<std::filesystem::path>& files, const Environment& environment,
                   const ConfigFlags& flags);

/// The lines of --print-config: each value with its source.
std::string describe(const Config& config);

}  // namespace quasi::client
