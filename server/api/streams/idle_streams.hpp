#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace quasi::server {

/// Streams that wait for their caller, and how long each has waited. Ends those that wait too long,
/// since each holds a place that others need. Thread-safe.
class IdleStreams {
 public:
  /// @param cancel  ends the stream's call; it may call end() on the same thread
  void begin(const void* stream, std::int64_t now_ms, std::function<void()> cancel) {
    const std::lock_guard lock(mutex_);
    streams_[stream] = {now_ms, std::move(cancel)};
  }
  /// The caller was heard of.
  void touch(const void* stream, std::int64_t now_ms) {
    const std::lock_guard lock(mutex_);
    if (const auto found = streams_.find(stream); found != streams_.end())
      found->second.heard_ms = now_ms;
  }
  /// After this the stream's cancel is not called any more.
  void end(const void* stream) {
    const std::lock_guard lock(mutex_);
    streams_.erase(stream);
  }
  /// Cancels every stream that was not heard of for `limit_ms`. @return how many.
  int cancel_idle(std::int64_t now_ms, std::int64_t limit_ms) {
    const std::lock_guard lock(mutex_);
    int cancelled = 0;
    for (auto at = streams_.begin(); at != streams_.end();) {
      if (now_ms - at->second.heard_ms < limit_ms) {
        ++at;
        continue;
      }
      // Taken out first: the cancelled call may end at once, here.
      const auto cancel = std::move(at->second.cancel);
      at = streams_.erase(at);
      cancel();
      ++cancelled;
    }
    return cancelled;
  }

 private:
  struct Stream {
    std::int64_t heard_ms = 0;
    std::function<void()> cancel;
  };
  std::recursive_mutex mutex_;
  std::map<const void*, Stream> streams_;
};

}  // namespace quasi::server
