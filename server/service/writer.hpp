#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "server/service/queue_engine.hpp"

namespace quasi::server {

/// The one thread that writes. Commands wait in a bounded queue; each group takes what is waiting
/// (at most 256) and shares one sync. While a group syncs, the next one gathers; it never waits
/// for more work.
class Writer {
 public:
  struct Hooks {
    /// After every commit, before the next group; runs on the writer's thread and must not block.
    std::function<void(const GroupOutcome&)> on_commit;
    /// The disk failed: must not return.
    std::function<void(const StorageFatal&)> on_fatal;
  };

  Writer(QueueEngine& engine, Hooks hooks);
  /// Finishes what is queued, then ends.
  ~Writer();

  /// Queues a write. `done` is called on the writer's thread.
  /// @return false if the queue is full or closed; nothing is called then.
  bool post(WriteTask task);

  /// Refuses further writes and returns when all queued ones are finished.
  void close();
  std::size_t depth() const;

 private:
  void run();

  QueueEngine& engine_;
  Hooks hooks_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<WriteTask> waiting_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace quasi::server
