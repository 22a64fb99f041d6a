#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace quasi::server {

/// Records when each stream last heard from its caller, and cancels streams that are idle for too
/// long, because each occupies one of a limited number of streams. Thread-safe.
class IdleStreams {
 public:
  /// Functions of a stream. They may call end() on the same thread.
  struct Actions {
    std::function<void()> cancel;       ///< ends the stream's call
    std::function<void()> end_if_lost;  ///< ends it if its caller has lost the right to it
  };
  /// Starts to watch `stream`.
  void begin(const void* stream, std::int64_t now_ms, Actions actions) {
    const std::lock_guard lock(mutex_);
    streams_[stream] = {now_ms, std::move(actions)};
  }
  /// Records that the caller sent something at `now_ms`.
  void touch(const void* stream, std::int64_t now_ms) {
    const std::lock_guard lock(mutex_);
    if (const auto found = streams_.find(stream); found != streams_.end())
      found->second.heard_ms = now_ms;
  }
  /// Stops watching. The stream's functions are not called after this.
  void end(const void* stream) {
    const std::lock_guard lock(mutex_);
    streams_.erase(stream);
  }
  /// Cancels every stream whose caller has been silent for `limit_ms`. @return the number of
  /// cancelled streams.
  int cancel_idle(std::int64_t now_ms, std::int64_t limit_ms) {
    const std::lock_guard lock(mutex_);
    int cancelled = 0;
    for (auto at = streams_.begin(); at != streams_.end();) {
      if (now_ms - at->second.heard_ms < limit_ms) {
        ++at;
        continue;
      }
      // The entry is removed first, because the cancelled call may end within `cancel`.
      const auto cancel = std::move(at->second.actions.cancel);
      at = streams_.erase(at);
      cancel();
      ++cancelled;
    }
    return cancelled;
  }
  /// Ends every stream whose caller has lost the right to it.
  void end_lost() {
    const std::lock_guard lock(mutex_);
    for (auto at = streams_.begin(); at != streams_.end();) {
      const auto current = at++;  // the stream may remove its entry
      current->second.actions.end_if_lost();
    }
  }

 private:
  struct Stream {
    std::int64_t heard_ms = 0;
    Actions actions;
  };
  std::recursive_mutex mutex_;
  std::map<const void*, Stream> streams_;
};

}  // namespace quasi::server
