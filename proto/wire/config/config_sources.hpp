#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// The one reader of the configurations of server and worker: a TOML file of keys without tables,
/// environment variables and flags. Each program has a table of its keys, with the checks of their
/// values. The client's file has named contexts and no such table (client/input/config.hpp).
namespace quasi::wire {

/// The configuration cannot be read. The text names the source, the key and the remedy.
struct ConfigProblem : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A value of a key as text, and where it was given.
struct ConfigText {
  std::string key;
  std::string text;    ///< entries of a TOML list are separated by commas
  std::string source;  ///< path of the file, name of the variable, or flag
};

struct ConfigSources {
  std::string program;  ///< e.g. "quasi-server"; its variables begin with QUASI_SERVER_
  std::string file;     ///< "": /etc/quasi/server.toml, if it exists
  std::vector<std::string> keys;
  std::map<std::string, std::string> flags;  ///< key → text, as given on the command line
};

/// All values that are given, in the order of their weight: those of the file, then for each key
/// that of the environment and that of the flag. The last one of a key counts.
/// @throws ConfigProblem for a file that is no TOML, for an unknown key, with the nearest known
/// one, and for a value that is a table
std::vector<ConfigText> config_texts(const ConfigSources& sources);

/// "--cache-bytes" for the key "cache_bytes".
std::string config_flag(std::string_view key);

/// "QUASI_WORKER_CACHE_BYTES" for the key "cache_bytes" of "quasi-worker".
std::string config_variable(std::string_view program, std::string_view key);

/// The flag that is most similar to `name`, with or without its dashes; "" if none is similar.
std::string nearest_config_flag(std::string name, const std::vector<std::string>& keys);

/// One line of --print-config: "key = value  # source". Without a source the value is built in.
std::string config_line(const std::string& key, const std::string& value,
                        const std::map<std::string, std::string>& sources);

}  // namespace quasi::wire
