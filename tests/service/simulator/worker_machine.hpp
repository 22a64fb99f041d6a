#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/service/simulator/server_process.hpp"
#include "tests/service/support/worker_world.hpp"

namespace quasi::sim {

using quasi::test::CrashingFiles;
using quasi::test::CrashPoints;

/// A device of a simulated machine, its fault, and the memory that each attempt is measured to hold
/// on it; 0: it is not measured.
struct SimulatedDevice {
  WorkerDevice device;
  std::string fault;
  std::int64_t attempt_bytes = 0;
};

/// A machine with the worker's daemon, its engines and its disk. The daemon is the supervisor of
/// production; it is killed and started again as by systemd.
class WorkerMachine {
 public:
  WorkerMachine(const Surroundings& around, std::string name, std::vector<SimulatedDevice> devices);
  ~WorkerMachine();

  void start();
  bool is_up() const { return daemon_ != nullptr; }
  /// kill -9 of the daemon. Its engines die with it, or soon after.
  void kill();
  /// The machine loses its power.
  void cut_power();
  /// The machine loses its power while its last messages are still on their way, and is away for
  /// longer than a lease.
  void fade();
  /// The daemon dies at one of the next changes of its disk.
  void die_at(std::int64_t points) { points_.restart(), points_.die_at(points); }
  /// SIGTERM. The daemon is started again when it has ended.
  void drain();
  /// One of its engines dies of SIGSEGV.
  void crash_an_engine();
  /// A device fails, or is well again.
  void toggle_fault();
  void heal();
  /// An operator restarts the daemon if a device without self-tests is quarantined.
  void mend();
  bool is_idle() const;
  const std::string& name() const { return name_; }
  std::vector<SimulatedDevice>& devices() { return devices_; }

 private:
  class Link;
  class Blobs;
  class Later;
  class Engine;
  class Engines;
  class Devices;
  struct Daemon;

  /// Runs a part of the daemon. A crash point inside of it ends the daemon.
  void run(const std::function<void()>& part);
  /// Runs a part of the present daemon after a delay, as an event.
  void later(std::int64_t delay_ms, std::function<void()> part);
  void wake_in_time();
  /// Ends the daemon and plans its next start.
  void lose(quasi::test::Loss loss, std::int64_t further_pause_ms = 0);
  void leave_strays();
  /// Lets the daemon fail once more soon after its start.
  void plan_relapse();
  /// The daemon asks for jobs.
  void note_poll();

  Surroundings around_;
  std::string name_;
  std::vector<SimulatedDevice> devices_;
  std::int64_t boot_offset_ms_ = 0;
  int incarnation_ = 0;
  std::int64_t next_pid_ = 0;
  CrashPoints points_;
  CrashingFiles files_{points_};
  EngineSettings engine_settings_;
  std::vector<Engine*> engines_;  ///< oldest first
  /// Engines of a killed daemon that still run: the devices, and the time of their end.
  struct Stray {
    std::vector<std::string> devices;
    std::int64_t until_ms = 0;
  };
  std::map<std::int64_t, Stray> strays_;
  std::unique_ptr<Daemon> daemon_;
  std::uint64_t life_ = 0;
  std::optional<std::int64_t> wake_at_ms_;
  bool breaks_at_poll_ = false;  ///< the connection breaks after the next request for jobs
};

}  // namespace quasi::sim
