#include "workers/daemon/worker_config.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "proto/wire/channel.hpp"
#include "proto/wire/config/config_sources.hpp"
#include "workers/daemon/error.hpp"

namespace quasi {
namespace {

constexpr double kMonth = 31.0 * 86'400.0;
constexpr double kMost = 1e18;

const ConfigKey* find_key(std::string_view name) {
  for (const ConfigKey& key : config_keys())
    if (key.name == name) return &key;
  return nullptr;
}

std::vector<std::string> known_keys() {
  std::vector<std::string> names;
  for (const ConfigKey& key : config_keys()) names.emplace_back(key.name);
  return names;
}

template <typename Number>
std::string number_text(Number value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return std::string(text.data(), end);
}

void check_words(const WorkerConfig& config) {
  const std::vector<std::string> levels{"debug", "info", "warning", "error"};
  if (std::find(levels.begin(), levels.end(), config.log_level) == levels.end())
    throw ConfigError("log_level must be debug, info, warning or error, got '" + config.log_level +
                      "'");
  if (config.devices != "auto" && config.devices != "nvml" && config.devices != "none" &&
      !config.devices.starts_with("fake:"))
    throw ConfigError("devices must be auto, nvml, none or fake:FILE, got '" + config.devices +
                      "'");
  if (!wire::is_server_address(config.server))
    throw ConfigError("server must be HOST:PORT or unix:/PATH, got '" + config.server + "'");
  if (config.ca.empty() && !wire::is_local_address(config.server))
    throw ConfigError(
        "server is beyond this machine, so ca must name the file with its CA, got "
        "server '" +
        config.server + "' and no ca; quasi-worker join CODE sets both");
  if (config.state_directory.empty()) throw ConfigError("state_directory must not be empty");
}

}  // namespace

const std::vector<ConfigKey>& config_keys() {
  using C = WorkerConfig;
  static const std::vector<ConfigKey> keys{
      {"server", "address of the server: host:port or unix:PATH", &C::server, 0, 0},
      {"token_file", "file with the token of this worker; not needed on a Unix socket",
       &C::token_file, 0, 0},
      {"ca", "file with the CA of the server's certificate; needed beyond this machine", &C::ca, 0,
       0},
      {"state_directory", "what the worker must still know after a crash", &C::state_directory, 0,
       0},
      {"name", "name shown to people; empty: the host's", &C::name, 0, 0},
      {"pool", "pool of jobs to serve", &C::pool, 0, 0},
      {"devices", "auto, nvml, none (CPU slots) or fake:FILE", &C::devices, 0, 0},
      {"slots", "attempts at once where there is no GPU", &C::slots, 1, 256},
      {"gpu_slots", "attempts at once on each GPU; their memory is counted", &C::gpu_slots, 1, 64},
      {"self_test",
       "program that tests the GPU of CUDA_VISIBLE_DEVICES; empty: the engine lists it",
       &C::self_test, 0, 0},
      {"self_test_interval_s", "between self-tests of an idle GPU; 0: none",
       &C::self_test_interval_s, 0, kMonth},
      {"end_time", "seconds since 1970 at which this worker has to end; 0: never", &C::end_time, 0,
       kMost},
      {"end_margin_s", "time before end_time at which this worker drains", &C::end_margin_s, 0,
       kMonth},
      {"idle_timeout_s", "time without a job until this worker drains; 0: never",
       &C::idle_timeout_s, 0, kMonth},
      {"threads", "threads of an engine whose job names none; 0: cores / slots", &C::threads, 0,
       1024},
      {"engine", "path of quasi-engine; empty: beside this program", &C::engine, 0, 0},
      {"environment", "further variables handed to engines, by comma", &C::environment, 0, 0},
      {"cage", "run engines where they reach their own files and devices alone", &C::cage, 0, 0},
      {"require_cage", "take no job where the system does not permit the whole cage",
       &C::require_cage, 0, 0},
      {"cage_readable", "further files and folders that engines may read, by comma",
       &C::cage_readable, 0, 0},
      {"isolate_network", "engines have no network where the system permits it",
       &C::isolate_network, 0, 0},
      {"cache_bytes", "inputs kept for later jobs", &C::cache_bytes, 0, kMost},
      {"min_free_scratch_bytes", "below this much free disk no lease is taken",
       &C::min_free_scratch_bytes, 0, kMost},
      {"max_ram_bytes", "most memory of an attempt, also if its job asks for more; 0: no limit",
       &C::max_ram_bytes, 0, kMost},
      {"max_file_bytes", "largest file an engine may write; 0: no limit", &C::max_file_bytes, 0,
       kMost},
      {"max_processes", "processes and threads of the engines' user; 0: no limit",
       &C::max_processes, 0, kMost},
      {"start_timeout_s", "from starting an engine to its first word", &C::start_timeout_s, 0.01,
       kMonth},
      {"cancel_grace_s", "from asking an engine to stop to SIGTERM", &C::cancel_grace_s, 0, kMonth},
      {"terminate_grace_s", "from SIGTERM to SIGKILL", &C::terminate_grace_s, 0, kMonth},
      {"kill_grace_s", "from SIGKILL to the device's quarantine", &C::kill_grace_s, 0, kMonth},
      {"drain_timeout_s", "time that running jobs get when the worker is told to stop",
       &C::drain_timeout_s, 0, kMonth},
      {"keep_fenced_s", "how long files of attempts that were taken away are kept",
       &C::keep_fenced_s, 0, kMonth},
      {"log_level", "debug, info, warning or error", &C::log_level, 0, 0},
  };
  return keys;
}

std::string ConfigKey::flag() const { return wire::config_flag(name); }

std::string nearest_flag(std::string_view name) {
  return wire::nearest_config_flag(std::string(name), known_keys());
}

void ConfigKey::set(WorkerConfig& config, const std::string& text, const std::string& from) const {
  const auto fail = [&](const std::string& must) {
    throw ConfigError(from + ": " + std::string(name) + " must be " + must + ", got '" + text +
                      "'");
  };
  const auto number = [&](auto& value) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || rest != end || !(static_cast<double>(value) >= minimum) ||
        !(static_cast<double>(value) <= maximum))
      fail("a number in " + number_text(minimum) + " ... " + number_text(maximum));
  };
  if (const auto* as_text = std::get_if<std::string WorkerConfig::*>(&member)) {
    config.*(*as_text) = text;
  } else if (const auto* as_integer = std::get_if<std::int64_t WorkerConfig::*>(&member)) {
    number(config.*(*as_integer));
  } else if (const auto* as_real = std::get_if<double WorkerConfig::*>(&member)) {
    number(config.*(*as_real));
  } else {
    if (text != "true" && text != "false") fail("true or false");
    config.*std::get<bool WorkerConfig::*>(member) = text == "true";
  }
}

std::string ConfigKey::get(const WorkerConfig& config) const {
  return std::visit(
      [&](const auto where) -> std::string {
        const auto& value = config.*where;
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string>)
          return "\"" + value + "\"";
        else if constexpr (std::is_same_v<Value, bool>)
          return value ? "true" : "false";
        else
          return number_text(value);
      },
      member);
}

std::string LoadedConfig::print() const {
  std::string text;
  for (const ConfigKey& key : config_keys())
    text += wire::config_line(std::string(key.name), key.get(config), origin);
  return text;
}

LoadedConfig load_config(const std::string& file, const std::map<std::string, std::string>& flags) {
  LoadedConfig loaded;
  std::vector<wire::ConfigText> texts;
  try {
    texts = wire::config_texts(
        {.program = "quasi-worker", .file = file, .keys = known_keys(), .flags = flags});
  } catch (const wire::ConfigProblem& problem) {
    throw ConfigError(problem.what());
  }
  for (const wire::ConfigText& given : texts) {
    find_key(given.key)->set(loaded.config, given.text, given.source);
    loaded.origin[given.key] = given.source;
  }
  check_words(loaded.config);
  // Engines work in directories of their own, where a relative path would name another place.
  std::string& state = loaded.config.state_directory;
  state = std::filesystem::absolute(state).lexically_normal().string();
  return loaded;
}

}  // namespace quasi
