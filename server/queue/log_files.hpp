#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quasi::server {

/// The bytes of the logs of attempts. The store records the committed length. Bytes beyond it are
/// the rest of an uncommitted write and are overwritten.
class LogFiles {
 public:
  virtual ~LogFiles() = default;
  virtual void write(const std::string& attempt_uid, std::int64_t offset,
                     std::string_view data) = 0;
  /// Reads up to `size` bytes from `offset`; fewer only at the end of the file.
  virtual std::string read(const std::string& attempt_uid, std::int64_t offset,
                           std::int64_t size) = 0;
};

}  // namespace quasi::server
