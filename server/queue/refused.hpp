#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace quasi::server {

/// Reason for refusing a call. Only server/api/status.cpp converts it to a gRPC status.
enum class Refusal : std::uint8_t {
  kInvalidArgument,
  kNotFound,
  kAlreadyExists,
  kFailedPrecondition,
  kAborted,
  kOutOfRange,
  kResourceExhausted,
  kUnavailable,
  kDeadlineExceeded,
  kDataLoss,
  kUnauthenticated,
  kPermissionDenied,
};

/// The exception of a refused command, which has no effect. The queue and the stores throw it
/// before any change, or inside a savepoint that is then rolled back.
struct Refused : std::runtime_error {
  struct Precondition {
    std::string type, subject, description;
  };

  Refused(Refusal kind_, std::string_view reason_, const std::string& message)
      : std::runtime_error(message), kind(kind_), reason(reason_) {}

  Refused& with(const std::string& key, const std::string& value) {
    metadata[key] = value;
    return *this;
  }
  Refused& retry_in(std::int64_t milliseconds) {
    retry_after_ms = milliseconds;
    return *this;
  }

  Refusal kind;
  std::string reason;  ///< ErrorInfo.reason, see proto/wire/status.hpp
  std::map<std::string, std::string> metadata;
  std::vector<Precondition> preconditions;
  std::optional<std::int64_t> retry_after_ms;
};

}  // namespace quasi::server
