#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <utility>

#include "server/service/writer.hpp"

namespace quasi::server {

/// Posts a task that recurs, such as the tick of the timer. While one waits or runs, further ones
/// are left out. Otherwise a writer that is slower than the timer would collect thousands of them,
/// and a caller's task would wait for them all.
class RecurringTask {
 public:
  explicit RecurringTask(Writer& writer) : writer_(writer) {}

  /// @return false if the former one has not ended or the writer takes no task.
  bool post(WriteTask task) {
    if (waits_->exchange(true)) return false;
    task.done = [waits = waits_, done = std::move(task.done)](const std::exception_ptr& error) {
      *waits = false;
      if (done) done(error);
    };
    const bool is_posted = writer_.post(std::move(task));
    if (!is_posted) *waits_ = false;
    return is_posted;
  }

 private:
  Writer& writer_;
  std::shared_ptr<std::atomic<bool>> waits_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace quasi::server
