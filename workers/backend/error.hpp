#pragma once

#include <stdexcept>

namespace quasi {

/// Base of every failure that the numerics report. Each subclass says who can act on it. Only
/// workers/engine catches them, where a task ends.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct InvalidInput : Error {  // For the user: the deck asks for something without an answer.
  using Error::Error;
};
struct NotConverged : Error {  // For the user: an iteration ended above its limit.
  using Error::Error;
};
struct OutOfMemory : Error {  // For the queue: a device with more memory may run the job.
  using Error::Error;
};
struct DeviceLost : Error {  // For the queue: the device failed, and this process must end.
  using Error::Error;
};
struct BackendAbsent : Error {  // For the operator: this worker lacks the back end of the job.
  using Error::Error;
};
struct StorageError : Error {  // For the operator: a file or a disk failed.
  using Error::Error;
};
struct Cancelled : Error {  // The job was asked to stop; no one has to act.
  using Error::Error;
};

}  // namespace quasi
