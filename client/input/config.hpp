#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace quasi::client {

/// Reads one environment variable; nullptr if unset. A parameter, so that tests need not touch the
/// process's own.
using Environment = std::function<const char*(const char*)>;

/// One value of the configuration and where it came from.
template <typename T>
struct Configured {
  T value;
  std::string origin = "built in";
};

/// What a command needs to know before it speaks to a server.
struct Config {
  Configured<std::string> context{"default"};
  Configured<std::string> address{"127.0.0.1:7460"};  ///< host:port or unix:/path
  Configured<double> timeout_s{15.0};                 ///< of one unary call
  Configured<std::filesystem::path> state_directory;  ///< journal of submissions, ids of the last
};

/// What the command line says about it; absent means "not said".
struct ConfigFlags {
  std::optional<std::string> context;
  std::optional<std::string> server;
  std::optional<std::string> timeout;
};

/// Files read, in rising order of rank: /etc/quasi/client.toml, then ~/.config/quasi/client.toml
/// (or XDG_CONFIG_HOME); QUASI_CONFIG names one file that replaces both.
std::vector<std::filesystem::path> config_files(const Environment& environment);

/// Built in < files < environment (QUASI_CONTEXT, QUASI_SERVER, QUASI_TIMEOUT, QUASI_STATE) <
/// flags.
///
///     timeout = "15s"
///     [context]
///     use = "lab"                # which of these is used when nothing is said
///     [context.lab]
///     address = "unix:/run/quasi/quasi.sock"
///
/// @throws Failure (kInvalidInput) naming file, line and key; an unknown key with the nearest
/// known.
Config load_config(const std::vector<std::filesystem::path>& files, const Environment& environment,
                   const ConfigFlags& flags);

/// The lines of --print-config: each value and its origin.
std::string describe(const Config& config);

}  // namespace quasi::client
