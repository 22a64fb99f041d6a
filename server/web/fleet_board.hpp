#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/queue/clock.hpp"
#include "server/queue/commands.hpp"
#include "server/web/series.hpp"

namespace quasi::server {

/// A device with the last half hour of it.
struct DeviceHistory {
  Series utilization;  ///< 0…1
  Series memory;       ///< used share, 0…1
};

/// The workers as the queue described them last, with the energy of their devices. The thread
/// that writes puts a copy here once a second. Readers take it without asking that thread.
/// Thread-safe.
class FleetBoard {
 public:
  /// Replaces the workers, and adds the power of their devices since the last call to their energy.
  void put(std::vector<WorkerStatus> workers, Now now);

  struct View {
    std::vector<WorkerStatus> workers;
    /// Reported power times the time since the server started, by worker id, "/" and device id.
    std::map<std::string, double> energy_joules;
  };
  std::shared_ptr<const View> view() const;

  /// The last half hour of each device that was seen in it, by worker id, "/" and device id. It
  /// has a value for each 15 s, for at most 1,024 devices.
  std::map<std::string, DeviceHistory> history() const;

  /// Notes the numbers of jobs; a value for each 15 s is kept.
  void put_jobs(std::int64_t queued, std::int64_t running, Now now);
  /// Copies the numbers of the last half hour.
  void copy_jobs(Series& queued, Series& running) const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const View> view_ = std::make_shared<View>();
  std::int64_t put_ms_ = 0;  ///< monotonic

  void note(Now now);
  /// A device since its last value in the history.
  struct Readings {
    DeviceHistory history;
    double utilization = 0, memory = 0;  ///< sums
    std::int64_t n = 0;
    std::int64_t seen_ms = 0;  ///< monotonic
  };
  std::map<std::string, Readings> readings_;
  std::int64_t noted_ms_ = 0, jobs_noted_ms_ = 0;  ///< monotonic
  Series queued_, running_;
};

}  // namespace quasi::server
