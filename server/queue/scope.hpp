#pragma once

#include <cstdint>
#include <string>

namespace quasi::server {

/// The callers who may see a job. The numbers are those of quasi.v1.Visibility.
enum class Visibility : std::uint8_t {
  kPrivate = 1,  ///< its owner and operators
  kTenant = 2,   ///< everybody in the owner's group, too
};

/// The jobs and files of which a caller may learn. Every query that a call of a user reaches takes
/// one, and jobs outside it are as if they did not exist (I15).
struct Scope {
  bool is_everything = false;     ///< an operator, an admin or a worker asks
  std::int64_t principal_id = 0;  ///< owner of the caller's jobs; 0: the owner of the server
  std::string tenant = "default";

  /// Everything, for the server itself.
  static Scope everything() { return {.is_everything = true}; }
};

}  // namespace quasi::server
