#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quasi::server {

/// The bytes of attempts' logs. The store knows how many of them count; what lies beyond is the
/// rest of a write that was not committed, and is overwritten.
class LogFiles {
 public:
  virtual ~LogFiles() = default;
  virtual void write(const std::string& attempt_uid, std::int64_t offset,
                     std::string_view data) = 0;
  /// Fewer bytes only at the end of the file.
  virtual std::string read(const std::string& attempt_uid, std::int64_t offset,
                           std::int64_t size) = 0;
};

}  // namespace quasi::server
