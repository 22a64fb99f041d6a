#pragma once

#include <chrono>
#include <optional>
#include <string>

/// Begin here: proto/wire/manager speaks to the service manager that started a daemon, which is
/// systemd with `Type=notify`. The protocol is that of sd_notify(3).
namespace quasi::wire {

/// Sends a state to the service manager, e.g. "READY=1" or "STOPPING=1". It does nothing if the
/// environment variable NOTIFY_SOCKET names no socket.
/// @return the reason why the state could not be sent; "" if it was sent, or nobody asks for it
std::string notify_manager(const std::string& state);

/// Pings the watchdog of the service manager from the loop that does the work of a daemon. If the
/// loop is stuck, the pings end, and the manager restarts the daemon (`WatchdogSec=`). One thread
/// uses it.
class Watchdog {
 public:
  /// Reads the interval of the manager from WATCHDOG_USEC. There is none if the variable is not
  /// set, or if WATCHDOG_PID names another process.
  Watchdog();

  /// The longest time between two turns of the loop, a quarter of the manager's interval; empty if
  /// the manager watches nothing.
  std::optional<std::chrono::milliseconds> turn_limit() const { return turn_limit_; }

  /// Says that the loop has turned. A ping is sent once a turn limit at most.
  void turned();

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<std::chrono::milliseconds> turn_limit_;
  Clock::time_point next_ping_;
};

}  // namespace quasi::wire
