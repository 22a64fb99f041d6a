#pragma once

#include <chrono>

namespace quasi {

/// Monotonic time. Leases, time limits and back-off never use the wall clock (docs/invariants.md,
/// I19).
using MonotonicTime = std::chrono::steady_clock::time_point;
using Milliseconds = std::chrono::milliseconds;

/// Source of the time. Tests provide a clock that they advance themselves.
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
