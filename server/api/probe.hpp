#pragma once

#include <string>

namespace quasi::server {

/// Asks the server at `address` for its health through grpc.health.v1, as a supervisor of
/// containers does.
/// @param ca_file  CA of the server's certificate; "": plain text
/// @return "SERVING", "NOT_SERVING", or the reason why no answer came within 5 s.
std::string probe(const std::string& address, const std::string& ca_file);

}  // namespace quasi::server
