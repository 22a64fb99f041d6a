#pragma once

#include "workers/backend/stopwatch.hpp"

namespace quasi::gw {

/// Adds the time of its scope to one phase.
class PhaseClock {
 public:
  explicit PhaseClock(double* seconds) : seconds_(seconds) {}
  ~PhaseClock() { *seconds_ += clock_.seconds(); }
  PhaseClock(const PhaseClock&) = delete;
  PhaseClock& operator=(const PhaseClock&) = delete;

 private:
  double* seconds_;
  Stopwatch clock_;
};

}  // namespace quasi::gw
