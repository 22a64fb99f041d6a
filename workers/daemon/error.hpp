#pragma once

#include <stdexcept>

namespace quasi {

/// A file or disk under the daemon fails; the message names path and cause.
struct StorageFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// No device can be seen any more, or none ever could; the daemon leaves with status 75.
struct DevicesLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The operator wrote something that cannot be; the daemon leaves with status 78.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Another daemon holds the state directory; this one leaves with status 73.
struct AlreadyRunning : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace quasi
