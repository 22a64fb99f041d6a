#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "proto/wire/channel.hpp"

namespace quasi {

/// Settings of a worker with their types and defaults.
struct WorkerConfig {
  std::string server = wire::default_address(std::getenv("XDG_RUNTIME_DIR"));
  std::string token_file;  ///< file with the worker's token; "": on a Unix socket none is needed
  std::string ca;  ///< file with the CA of the server; "": plain text, on this machine alone
  std::string state_directory = "/var/lib/quasi-worker";
  std::string name;  ///< "": name of the host
  std::string pool = "default";
  std::string devices = "auto";           ///< auto, nvml, none or fake:FILE
  std::int64_t slots = 1;                 ///< slots of the CPU if there is no GPU
  std::int64_t gpu_slots = 1;             ///< slots of each GPU, whose memory the server counts
  std::string self_test;                  ///< program that tests a GPU; "": the engine lists it
  double self_test_interval_s = 1'800.0;  ///< between self-tests of an idle GPU; 0: none
  std::int64_t end_time = 0;    ///< seconds since 1970 at which this worker has to end; 0: never
  double end_margin_s = 180.0;  ///< time before `end_time` at which it drains
  double idle_timeout_s = 0.0;  ///< time without a job until it drains; 0: never
  std::int64_t threads = 0;     ///< threads of an engine whose job names none; 0: cores / slots
  std::string engine;           ///< "": quasi-engine beside this program
  std::string environment;      ///< further variables for engines, separated by commas
  bool cage = true;             ///< Engines run inside quasi-cage.
  bool require_cage = false;    ///< Without a whole cage the worker takes no job.
  std::string cage_readable;    ///< further files and folders that engines may read, by comma
  bool isolate_network = true;
  std::int64_t cache_bytes = std::int64_t{20} << 30;
  std::int64_t min_free_scratch_bytes = std::int64_t{1} << 30;
  std::int64_t max_file_bytes = std::int64_t{64} << 30;
  std::int64_t max_ram_bytes = 0;
  std::int64_t max_processes = 8192;
  double start_timeout_s = 60.0;
  double cancel_grace_s = 20.0;
  double terminate_grace_s = 10.0;
  double kill_grace_s = 5.0;
  double drain_timeout_s = 120.0;
  double keep_fenced_s = 86'400.0;
  std::string log_level = "info";  ///< debug, info, warning, error
};

/// One key of the configuration: its name, its meaning, and the conversions between text and value.
class ConfigKey {
 public:
  using Member = std::variant<std::string WorkerConfig::*, std::int64_t WorkerConfig::*,
                              double WorkerConfig::*, bool WorkerConfig::*>;
  ConfigKey(std::string_view key_name, std::string_view what, Member where, double least,
            double most)
      : name(key_name), help(what), member(where), minimum(least), maximum(most) {}

  std::string flag() const;  ///< "--cache-bytes"
  /// Sets the value from text. @throws ConfigError naming `from`, the key, the value and the
  /// accepted values.
  void set(WorkerConfig& config, const std::string& text, const std::string& from) const;
  std::string get(const WorkerConfig& config) const;  ///< as TOML writes it

  std::string_view name;
  std::string_view help;
  Member member;
  double minimum, maximum;  ///< limits of a number
};

/// Returns all keys in the order of `--print-config`.
const std::vector<ConfigKey>& config_keys();
/// Returns the flag that is most similar to `name`, or "" if none is similar.
std::string nearest_flag(std::string_view name);

/// A configuration and the origin of each value.
struct LoadedConfig {
  WorkerConfig config;
  std::map<std::string, std::string> origin;  ///< key → "built-in", "FILE", "QUASI_WORKER_…", "--…"

  /// Prints one line "key = value  # origin" for each key.
  std::string print() const;
};

/// Loads the configuration. Flags override the environment, which overrides the file, which
/// overrides built-in values.
/// @param file   "": /etc/quasi/worker.toml if it exists
/// @param flags  key → text, as given on the command line
/// @throws ConfigError; for an unknown key it names the nearest known one.
LoadedConfig load_config(const std::string& file, const std::map<std::string, std::string>& flags);

}  // namespace quasi
