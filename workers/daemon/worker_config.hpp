#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace quasi {

/// Everything an operator can say to a worker, typed, once.
struct WorkerConfig {
  std::string server = "127.0.0.1:7460";
  std::string state_directory = "/var/lib/quasi-worker";
  std::string name;  ///< "": the host's
  std::string pool = "default";
  std::string devices = "auto";  ///< auto, nvml, none or fake:FILE
  std::int64_t slots = 1;        ///< of the CPU, where there is no GPU
  std::int64_t threads = 0;      ///< of an engine whose job names none; 0: cores / slots
  std::string engine;            ///< "": quasi-engine beside this program
  std::string environment;       ///< further variables for engines, by comma
  bool isolate_network = true;
  std::int64_t cache_bytes = std::int64_t{20} << 30;
  std::int64_t min_free_scratch_bytes = std::int64_t{1} << 30;
  std::int64_t max_file_bytes = std::int64_t{64} << 30;
  std::int64_t max_processes = 8192;
  double start_timeout_s = 60.0;
  double cancel_grace_s = 20.0;
  double terminate_grace_s = 10.0;
  double kill_grace_s = 5.0;
  double drain_timeout_s = 120.0;
  double keep_fenced_s = 86'400.0;
  std::string log_level = "info";  ///< debug, info, warning, error
};

/// One key: how it is called, what it means, how text becomes its value and back.
class ConfigKey {
 public:
  using Member = std::variant<std::string WorkerConfig::*, std::int64_t WorkerConfig::*,
                              double WorkerConfig::*, bool WorkerConfig::*>;
  ConfigKey(std::string_view key_name, std::string_view what, Member where, double least,
            double most)
      : name(key_name), help(what), member(where), minimum(least), maximum(most) {}

  std::string flag() const;      ///< "--cache-bytes"
  std::string variable() const;  ///< "QUASI_WORKER_CACHE_BYTES"
  /// @throws ConfigError naming `from`, the key, the value and what it may be.
  void set(WorkerConfig& config, const std::string& text, const std::string& from) const;
  std::string get(const WorkerConfig& config) const;  ///< as TOML writes it

  std::string_view name;
  std::string_view help;
  Member member;
  double minimum, maximum;  ///< of numbers
};

const std::vector<ConfigKey>& config_keys();
/// The flag of the key most like `name`; "" if none is near.
std::string nearest_flag(std::string_view name);

/// A configuration and, for each key, where its value came from.
struct LoadedConfig {
  WorkerConfig config;
  std::map<std::string, std::string> origin;  ///< key → "built-in", "FILE", "QUASI_WORKER_…", "--…"

  /// "key = value  # origin", a line each.
  std::string print() const;
};

/// Built-in values < file < environment < flags.
/// @param file   "": /etc/quasi/worker.toml if it exists
/// @param flags  key → text, as given on the command line
/// @throws ConfigError; an unknown key names the nearest known one.
LoadedConfig load_config(const std::string& file, const std::map<std::string, std::string>& flags);

}  // namespace quasi
