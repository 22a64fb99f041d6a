#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/queue/clock.hpp"
#include "server/queue/commands.hpp"

namespace quasi::server {

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

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const View> view_ = std::make_shared<View>();
  std::int64_t put_ms_ = 0;  ///< monotonic
};

}  // namespace quasi::server
