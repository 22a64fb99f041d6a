#pragma once

#include <stdexcept>
#include <string>

namespace quasi::server {

/// The configuration cannot be used. The program exits with status 78.
struct BadConfiguration : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Accepts loopback addresses and Unix sockets only, because the server has no users and no TLS
/// yet.
/// @throws BadConfiguration with the reason.
void require_local(const std::string& address);

}  // namespace quasi::server
