#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "server/service/queue_engine.hpp"

namespace quasi::server {

/// An open call that waits for a commit or for a time.
class HubListener {
 public:
  virtual ~HubListener() = default;
  /// A commit changed the store. It runs on the writer's thread and must not block.
  virtual void on_commit(const GroupOutcome& outcome) = 0;
  /// Called a few times a second.
  virtual void on_tick(std::int64_t monotonic_ms) = 0;
  /// The server is stopping: the call must finish soon.
  virtual void on_close() = 0;
};

/// Tells open calls about commits and time. It holds weak references, so calls that have ended are
/// dropped. Thread-safe.
class Hub {
 public:
  /// Adds a listener. After close() the listener's on_close is called at once.
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
