#pragma once

#include <cstdint>
#include <string>

namespace quasi::server {

/// The files with the older parts of the logs of attempts. The store holds the newest parts.
class LogFiles {
 public:
  virtual ~LogFiles() = default;
  /// Reads up to `size` bytes from `offset`; fewer only at the end of the file.
  virtual std::string read(const std::string& attempt_uid, std::int64_t offset,
                           std::int64_t size) = 0;
};

}  // namespace quasi::server
