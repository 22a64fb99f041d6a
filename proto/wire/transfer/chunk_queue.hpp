#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace quasi::wire {

/// Hands chunks of bytes in their order to a function that runs in a thread of its own. The caller
/// receives the next chunk meanwhile. One thread calls append() and finish().
class ChunkQueue {
 public:
  /// Number of chunks that wait at most. With chunks of kChunkBytes they hold 2 MiB.
  static constexpr std::size_t kWaitingChunks = 8;

  /// @param take  receives each chunk. Its exception is thrown again by the next append() or
  ///              finish(), and it is not called again.
  explicit ChunkQueue(std::function<void(const std::string&)> take);
  /// Waits until the chunks that have been appended are taken.
  ~ChunkQueue();
  ChunkQueue(const ChunkQueue&) = delete;
  ChunkQueue& operator=(const ChunkQueue&) = delete;

  /// Moves the bytes into the queue and leaves a used buffer in `chunk`. Waits while kWaitingChunks
  /// wait. @throws the exception of an earlier chunk.
  void append(std::string& chunk);

  /// Returns when every chunk is taken. Nothing may be appended after it.
  /// @throws the exception of a chunk.
  void finish();

 private:
  void run();
  void close();

  const std::function<void(const std::string&)> take_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;
  std::vector<std::string> used_;  ///< buffers whose memory the next chunks take over
  std::exception_ptr failure_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace quasi::wire
