#include "workers/daemon/daemon.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

#include "proto/wire/channel.hpp"
#include "proto/wire/chunks.hpp"
#include "proto/wire/manager/service_manager.hpp"
#include "workers/daemon/devices/engine_facts.hpp"
#include "workers/daemon/error.hpp"
#include "workers/daemon/ports/event_loop.hpp"
#include "workers/daemon/ports/grpc_link.hpp"
#include "workers/daemon/ports/local_spawner.hpp"
#include "workers/daemon/ports/posix_file_system.hpp"
#include "workers/daemon/supervisor.hpp"
#include "workers/daemon/worker_identity.hpp"

namespace quasi {
namespace {

namespace fs = std::filesystem;
constexpr int kTransferThreads = 4;
// Time for reports after a second stop signal, which kills all children. The next start sends the
// reports that remain.
constexpr Milliseconds kStopLimit{5'000};

Milliseconds milliseconds(double seconds) {
  return Milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "worker";
}

fs::path engine_path(const WorkerConfig& config) {
  return config.engine.empty() ? fs::read_symlink("/proc/self/exe").parent_path() / "quasi-engine"
                               : fs::path(config.engine);
}

fs::path cage_path(const WorkerConfig& config) {
  if (!config.cage) return {};
  return fs::read_symlink("/proc/self/exe").parent_path() / "quasi-cage";
}

/// Says how far engines are confined. @throws ConfigError if the operator requires more.
void check_cage(const WorkerConfig& config, WorkerLog& log) {
  const std::string remedy =
      "; require_cage = false lets this worker run jobs of people who trust each other";
  if (!config.cage) {
    if (config.require_cage)
      throw ConfigError("cage = false contradicts require_cage = true; remove one of them");
    return log.warning("engines_not_caged", {{"why", "cage = false"}});
  }
  const CageFacts facts = ask_cage(cage_path(config));
  const bool whole = facts.whole && config.isolate_network;
  if (!whole && config.require_cage)
    throw ConfigError("engines cannot be confined here: " + facts.summary +
                      (config.isolate_network ? "" : ", isolate_network = false") + remedy);
  whole ? log.info("cage", {{"walls", facts.summary}})
        : log.warning("cage_incomplete", {{"walls", facts.summary}});
}

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

std::vector<fs::path> readable_paths(const WorkerConfig& config) {
  std::vector<fs::path> paths;
  for (const std::string& part : parts_of(config.cage_readable)) {
    if (!part.starts_with('/'))
      throw ConfigError("cage_readable names '" + part + "'; it must be an absolute path");
    paths.emplace_back(part);
  }
  return paths;
}

/// Returns the environment variables that engines inherit: those by which programs find files and
/// the user's language, and those that our libraries read. Nothing else is passed, so no secret of
/// the daemon leaks.
std::vector<std::string> engine_environment(const WorkerConfig& config) {
  std::vector<std::string> names{"PATH",
                                 "HOME",
                                 "LANG",
                                 "LC_ALL",
                                 "TZ",
                                 "TMPDIR",
                                 "LD_LIBRARY_PATH",
                                 "ASAN_OPTIONS",
                                 "UBSAN_OPTIONS",
                                 "TSAN_OPTIONS",
                                 "LSAN_OPTIONS"};
  for (const std::string& name : parts_of(config.environment)) names.push_back(name);
  std::vector<std::string> variables;
  for (const auto& name : names)
    if (const char* value = std::getenv(name.c_str())) variables.push_back(name + "=" + value);
  return variables;
}

EngineSettings engine_settings(const WorkerConfig& config) {
  EngineSettings settings;
  settings.times = {.start_timeout = milliseconds(config.start_timeout_s),
                    .cancel_grace = milliseconds(config.cancel_grace_s),
                    .terminate_grace = milliseconds(config.terminate_grace_s),
                    .kill_grace = milliseconds(config.kill_grace_s),
                    .drain_timeout = milliseconds(config.drain_timeout_s)};
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  settings.threads = static_cast<int>(
      config.threads > 0 ? config.threads : std::max<std::int64_t>(1, cores / config.slots));
  settings.max_ram_bytes = static_cast<std::uint64_t>(config.max_ram_bytes);
  settings.environment = engine_environment(config);
  settings.require_cage = config.require_cage;
  return settings;
}

WorkerLog::Level log_level(const std::string& name) {
  if (name == "debug") return WorkerLog::Level::kDebug;
  if (name == "warning") return WorkerLog::Level::kWarning;
  if (name == "error") return WorkerLog::Level::kError;
  return WorkerLog::Level::kInfo;
}

/// Delivers the signals that end a daemon through a descriptor. It must be created before any other
/// thread.
class StopSignals {
 public:
  StopSignals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    descriptor_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~StopSignals() { close(descriptor_); }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int descriptor() const { return descriptor_; }
  /// Returns the number of signals since the last call.
  int take() {
    signalfd_siginfo info{};
    int count = 0;
    while (read(descriptor_, &info, sizeof info) == sizeof info) ++count;
    return count;
  }

 private:
  int descriptor_ = -1;
};

SupervisorSettings supervisor_settings(const WorkerConfig& config, const EngineFacts& facts,
                                       std::string worker_id) {
  SupervisorSettings settings;
  settings.worker_id = std::move(worker_id);
  settings.incarnation = wire::make_uuid();
  settings.name = config.name.empty() ? host_name() : config.name;
  settings.pool = config.pool;
  settings.version = QUASI_VERSION;
  settings.kinds = facts.kinds;
  settings.keep_fenced = milliseconds(config.keep_fenced_s);
  settings.make_uuid = wire::make_uuid;
  settings.self_test_interval = milliseconds(config.self_test_interval_s);
  settings.idle_timeout = milliseconds(config.idle_timeout_s);
  if (config.end_time > 0) {
    const auto left = std::chrono::system_clock::from_time_t(config.end_time) -
                      std::chrono::system_clock::now() - milliseconds(config.end_margin_s);
    settings.drain_at = SteadyClock().now() + std::chrono::duration_cast<Milliseconds>(
                                                  std::chrono::floor<Milliseconds>(left));
  }
  settings.scratch_shortage = [directory = config.state_directory,
                               least = static_cast<std::uintmax_t>(config.min_free_scratch_bytes)] {
    std::error_code error;
    const auto space = fs::space(directory, error);
    if (error) return "cannot read the free space of " + directory + ": " + error.message();
    if (space.available >= least) return std::string();
    return directory + " has " + std::to_string(space.available >> 20) +
           " MiB free, min_free_scratch_bytes asks for " + std::to_string(least >> 20) + " MiB";
  };
  settings.jitter = [engine = std::mt19937(std::random_device{}())]() mutable {
    return std::uniform_real_distribution<double>(-1.0, 1.0)(engine);
  };
  return settings;
}

/// Makes the devices of the configuration. If the engine has no CUDA, "auto" selects the CPU and
/// logs the reason.
std::unique_ptr<DeviceSource> make_devices_for(const WorkerConfig& config, const EngineFacts& facts,
                                               WorkerLog& log) {
  auto source = make_devices(config);
  const auto devices = source->devices();
  const bool gpus = std::any_of(devices.begin(), devices.end(),
                                [](const WorkerDevice& device) { return device.cuda; });
  if (!gpus || facts.cuda || config.devices.starts_with("fake:")) return source;
  const std::string why = "the engine cannot use the GPUs: " + facts.cuda_absence;
  if (config.devices == "nvml") throw ConfigError(why);
  log.warning("gpus_left_alone", {{"why", why}});
  return make_cpu_slots(static_cast<int>(config.slots));
}

/// Tells the service manager the state of the daemon.
void tell_manager(const std::string& state, WorkerLog& log) {
  const std::string failure = wire::notify_manager(state);
  if (!failure.empty()) log.warning("manager_not_told", {{"state", state}, {"why", failure}});
}

DaemonExit run(const WorkerConfig& config, StopSignals& signals, WorkerLog& log) {
  PosixFileSystem files;
  const fs::path state = config.state_directory;
  files.make_directory(state);
  const StateLock lock(state);
  const EngineFacts facts = ask_engine(engine_path(config));
  check_cage(config, log);
  const auto source = make_devices_for(config, facts, log);
  DeviceBoard devices(*source, log);
  AttemptStore store(files, state);
  InputCache inputs(files, state / "cache", static_cast<std::uint64_t>(config.cache_bytes));
  const EngineSettings engine = engine_settings(config);

  EventLoop loop;
  LocalSpawner spawner(loop, {.engine = engine_path(config),
                              .cage = cage_path(config),
                              .isolate_network = config.isolate_network,
                              .readable = readable_paths(config),
                              .max_file_bytes = static_cast<std::uint64_t>(config.max_file_bytes),
                              .max_processes = static_cast<std::uint64_t>(config.max_processes)});
  const auto channel = wire::open_channel(config.server, config.token_file, config.ca);
  SteadyClock clock;
  GrpcBlobs blobs(channel);
  // Members are destroyed in this order: first the attempts, then the calls and transfers that
  // report to them.
  ThreadPool background(loop, kTransferThreads);
  GrpcLink server(loop, channel);
  Supervisor supervisor(supervisor_settings(config, facts, load_worker_id(files, state)), engine,
                        {.clock = clock,
                         .files = files,
                         .store = store,
                         .inputs = inputs,
                         .spawner = spawner,
                         .server = server,
                         .blobs = blobs,
                         .background = background,
                         .log = log},
                        devices);
  int n_signals = 0;
  std::optional<MonotonicTime> give_up;
  loop.watch(signals.descriptor(), [&] {
    n_signals += signals.take();
    supervisor.drain();
    if (n_signals < 2) return;
    supervisor.stop_now();
    if (!give_up) give_up = clock.now() + kStopLimit;
  });
  supervisor.start();
  tell_manager("READY=1", log);
  wire::Watchdog watchdog;
  bool said_stopping = false;
  while (!supervisor.finished() && !(give_up && clock.now() >= *give_up)) {
    auto deadline = supervisor.next_deadline();
    const auto bound = [&](MonotonicTime time) {
      deadline = deadline ? std::min(*deadline, time) : time;
    };
    if (give_up) bound(*give_up);
    if (watchdog.turn_limit()) bound(clock.now() + *watchdog.turn_limit());
    loop.run_once(deadline);
    supervisor.tick();
    watchdog.turned();
    if (n_signals > 0 && !std::exchange(said_stopping, true)) tell_manager("STOPPING=1", log);
  }
  log.info("stopped", {{"attempts_left", supervisor.attempts()}});
  return DaemonExit::kClean;
}

}  // namespace

std::unique_ptr<DeviceSource> make_devices(const WorkerConfig& config) {
  const auto slots = static_cast<int>(config.slots);
  if (config.devices.starts_with("fake:")) return make_fake_devices(config.devices.substr(5));
  if (config.devices == "none") return make_cpu_slots(slots);
  try {
    return make_nvml_devices(static_cast<int>(config.gpu_slots), [config](const std::string& uuid) {
      return test_device(engine_path(config), config.self_test, uuid);
    });
  } catch (const DevicesLost&) {
    // "auto" uses the devices that the machine has. "nvml" requires a GPU.
    if (config.devices == "nvml") throw;
    return make_cpu_slots(slots);
  }
}

DaemonExit serve(const WorkerConfig& config) {
  StopSignals signals;
  StderrLog log(log_level(config.log_level), isatty(STDERR_FILENO) != 0);
  try {
    return run(config, signals, log);
  } catch (const ConfigError& error) {
    log.error("cannot_start", {{"why", error.what()}});
    return DaemonExit::kConfig;
  } catch (const AlreadyRunning& error) {
    log.error("cannot_start", {{"why", error.what()}});
    return DaemonExit::kAlreadyRunning;
  } catch (const DevicesLost& error) {
    log.error("devices_lost", {{"why", error.what()}});
    return DaemonExit::kDevicesLost;
  } catch (const StorageFailure& error) {
    log.error("storage_failed", {{"why", error.what()}});
    return DaemonExit::kStorage;
  }
}

}  // namespace quasi
