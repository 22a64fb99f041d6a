#pragma once

#include <stdexcept>
#include <string>

namespace quasi::server {

/// A configuration that cannot be served. Exit status 78.
struct BadConfiguration : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Until users and TLS exist, only loopback addresses and Unix sockets are served.
/// @throws BadConfiguration that says why.
void require_local(const std::string& address);

}  // namespace quasi::server
