#pragma once

#include <chrono>

namespace quasi {

/// Monotonic time: leases, time limits and back-off never look at the wall clock.
using MonotonicTime = std::chrono::steady_clock::time_point;
using Milliseconds = std::chrono::milliseconds;

/// Time as a parameter, so that tests move it by hand.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicTime now() const = 0;
};

class SteadyClock : public Clock {
 public:
  MonotonicTime now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace quasi
