#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "server/service/queue_engine.hpp"

namespace quasi::server {

/// An open call that waits for something to happen.
class HubListener {
 public:
  virtual ~HubListener() = default;
  /// A commit changed something. Runs on the writer's thread; must not block.
  virtual void on_commit(const GroupOutcome& outcome) = 0;
  /// A few times a second.
  virtual void on_tick(std::int64_t monotonic_ms) = 0;
  /// The server is going away: finish soon.
  virtual void on_close() = 0;
};

/// Tells open calls about commits and time. Holds them weakly: whoever ended is forgotten.
/// Thread-safe.
class Hub {
 public:
  /// A listener that comes after close() is told so at once.
  void add(const std::shared_ptr<HubListener>& listener);
  void commit(const GroupOutcome& outcome);
  void tick(std::int64_t monotonic_ms);
  void close();

 private:
  std::vector<std::shared_ptr<HubListener>> living();
  std::mutex mutex_;
  std::vector<std::weak_ptr<HubListener>> listeners_;
  bool closed_ = false;
};

}  // namespace quasi::server
