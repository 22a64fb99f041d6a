#pragma once

#include <chrono>

namespace quasi {

/// A clock that starts when it is made and is not affected by changes of the system's time.
class Stopwatch {
 public:
  /// Returns the time since the clock was made, in s.
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace quasi
