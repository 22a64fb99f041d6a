#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "workers/daemon/ports/clock.hpp"

namespace quasi {

/// The daemon's one thread of decisions: waits for descriptors, posted functions and a deadline.
/// All but post() belong to that thread.
class EventLoop {
 public:
  /// @throws std::system_error.
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// `on_readable` is called while `descriptor` has something to read or is closed.
  void watch(int descriptor, std::function<void()> on_readable);
  void unwatch(int descriptor);
  /// From any thread: runs `function` soon.
  void post(std::function<void()> function);

  /// Waits for events until `deadline` at most and handles those that are there.
  void turn(std::optional<MonotonicTime> deadline);

 private:
  void run_posted();

  int epoll_ = -1;
  int wake_ = -1;
  std::map<int, std::function<void()>> watched_;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;
};

}  // namespace quasi
