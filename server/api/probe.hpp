#pragma once

#include <string>

namespace quasi::server {

/// Asks the server at `address` for its health through grpc.health.v1, as a supervisor of
/// containers does.
/// @return "SERVING", "NOT_SERVING", or the reason why no answer came within 5 s.
std::string probe(const std::string& address);

}  // namespace quasi::server
