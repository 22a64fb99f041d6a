#pragma once

#include <exception>
#include <mutex>
#include <utility>

namespace quasi {

/// Carries an exception out of an OpenMP region, which an exception must not leave. Each thread
/// runs its share under guard(). After the region its opener calls rethrow(), which throws the
/// first exception that was caught.
class ParallelFailure {
 public:
  /// Calls `body` and keeps its exception if it is the first one.
  template <typename Body>
  void guard(Body&& body) noexcept {
    try {
      std::forward<Body>(body)();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_) first_ = std::current_exception();
    }
  }
  /// Throws the exception that was kept, if any.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace quasi
