#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "workers/daemon/ports/clock.hpp"

namespace quasi {

/// Begin here: event loop of the daemon's main thread. It waits for descriptors, posted functions
/// and a deadline. Only post() may be called from other threads. The other files of this folder are
/// interfaces to the server, to processes, to files and to the clock, each with its implementation.
class EventLoop {
 public:
  /// @throws std::system_error if the system provides no epoll or event descriptor.
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Calls `on_readable` whenever `descriptor` has something to read or is closed.
  void watch(int descriptor, std::function<void()> on_readable);
  /// Stops watching a descriptor.
  void unwatch(int descriptor);
  /// Runs `function` soon on the loop's thread. May be called from any thread.
  void post(std::function<void()> function);

  /// Waits for events until `deadline` at most and calls the handlers of all that have arrived.
  void run_once(std::optional<MonotonicTime> deadline);

 private:
  void run_posted();

  int epoll_ = -1;
  int wake_ = -1;
  std::map<int, std::function<void()>> watched_;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;
};

}  // namespace quasi
