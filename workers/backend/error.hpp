#pragma once

#include <stdexcept>

namespace quasi {

/// Base of every failure that the numerics report, named for who must act. Caught only where a task
/// ends (workers/engine).
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct InvalidInput : Error {
  using Error::Error;
};  ///< the user: this problem has no answer
struct NotConverged : Error {
  using Error::Error;
};  ///< the user: says limit and residual
struct OutOfMemory : Error {
  using Error::Error;
};  ///< the queue: a larger device may do
struct DeviceLost : Error {
  using Error::Error;
};  ///< the queue: this process must end
struct BackendAbsent : Error {
  using Error::Error;
};  ///< the operator: wrong worker for the job
struct StorageError : Error {
  using Error::Error;
};  ///< the operator: a file or disk fails
struct Cancelled : Error {
  using Error::Error;
};  ///< nobody: it was asked for

}  // namespace quasi
