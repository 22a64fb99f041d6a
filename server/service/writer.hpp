#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "server/figures/histogram.hpp"
#include "server/service/queue_engine.hpp"

namespace quasi::server {

/// The only thread that writes. Commands wait in a bounded queue. Each group takes the waiting
/// commands (at most 256) and shares one sync. The next group gathers while a group syncs; the
/// writer never waits for more commands.
class Writer {
 public:
  struct Hooks {
    /// Called after every commit and before the next group, on the writer's thread. It must not
    /// block.
    std::function<void(const GroupOutcome&)> on_commit;
    /// Called when the disk has failed. It must not return.
    std::function<void(const StorageFatal&)> on_fatal;
    WriterFigures* figures = nullptr;  ///< counts groups, if given
  };

  Writer(QueueEngine& engine, Hooks hooks);
  /// Finishes the queued writes, then ends the thread.
  ~Writer();

  /// Queues a write. `done` is called on the writer's thread.
  /// @return false if the queue is full or closed; then `done` is never called.
  bool post(WriteTask task);

  /// Refuses further writes and returns when all queued ones are finished.
  void close();
  std::size_t depth() const;

 private:
  void run();
  void count(std::size_t size, std::chrono::steady_clock::time_point begun);

  QueueEngine& engine_;
  Hooks hooks_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<WriteTask> waiting_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace quasi::server
