#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

namespace quasi::gw {

/// Seconds of each step of a phase, added up over the threads that work on it, one for each device.
class StepTimes {
 public:
  void add(const std::string& step, double seconds) {
    const std::lock_guard lock(mutex_);
    seconds_[step] += seconds;
  }
  const std::map<std::string, double>& seconds() const { return seconds_; }

 private:
  std::mutex mutex_;
  std::map<std::string, double> seconds_;
};

/// Adds the time since its construction, or since the previous step, to one step.
class StepClock {
 public:
  /// @param times  null: no times are recorded
  explicit StepClock(StepTimes* times) : times_(times) {}
  void step(const char* name) {
    const auto now = std::chrono::steady_clock::now();
    if (times_ != nullptr) times_->add(name, std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }
  /// Counts the time since the previous step for no step.
  void skip() { last_ = std::chrono::steady_clock::now(); }

 private:
  StepTimes* times_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace quasi::gw
