#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/store/read_store.hpp"

namespace quasi::server {

/// A pool of a few threads with a bounded queue.
class WorkPool {
 public:
  explicit WorkPool(std::size_t threads) : WorkPool(threads, {}) {}
  ~WorkPool();

  /// @return false if the queue is full or closed.
  bool post(std::function<void()> work);
  void close();
  /// Number of pieces of work done since the start.
  std::uint64_t done() const { return done_; }

 protected:
  WorkPool(std::size_t threads, std::function<void()> on_thread_start);

 private:
  void run();
  std::function<void()> on_thread_start_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool closed_ = false;
  std::atomic<std::uint64_t> done_{0};
  std::vector<std::thread> threads_;
};

/// Threads that read the database. Each has a read connection of its own.
class Readers : public WorkPool {
 public:
  Readers(const std::string& database_path, std::size_t threads);
  /// @return false if the queue is full or closed.
  bool read(std::function<void(ReadStore&)> work);
};

}  // namespace quasi::server
