#pragma once

#include <stdexcept>

namespace quasi {

/// Failure of a file or disk of the daemon. The message names path and cause.
struct StorageFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Loss of all devices, or no device at the start. The daemon exits with status 75.
struct DevicesLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Invalid configuration. The daemon exits with status 78.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Another daemon holds the state directory. This daemon exits with status 73.
struct AlreadyRunning : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace quasi
