#pragma once

#include <stdexcept>
#include <string>

namespace quasi::server {

/// The configuration cannot be used. The program exits with status 78.
struct BadConfiguration : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Accepts HOST:PORT with a port in 0...65535, and unix:/PATH.
/// @throws BadConfiguration with the reason.
void require_address(const std::string& address);

/// Accepts loopback addresses and Unix sockets only. A server without a certificate has no others,
/// because tokens and results would travel in plain text.
/// @throws BadConfiguration with the reason.
void require_local(const std::string& address);

}  // namespace quasi::server
