#pragma once

#include <cstdint>

#include "server/access/principal.hpp"
#include "server/access/token_buckets.hpp"

namespace quasi::server {

/// Limits the bytes that each principal sends: N bytes a second, and ten seconds of them at once.
/// An upload is slowed down to the rate by the time until its next message is read. A further
/// upload is refused while the principal is over the rate. Workers, which send the results of jobs,
/// and the owner of a server without tokens have no limit. Thread-safe.
class UploadRates {
 public:
  /// @param bytes_per_second  N; 0: no limit
  explicit UploadRates(std::int64_t bytes_per_second)
      : bytes_per_second_(bytes_per_second), spent_(1, kBurstUs) {}

  /// Checks that a principal may begin an upload.
  /// @param now_ms  the monotonic clock
  /// @throws Refused RESOURCE_EXHAUSTED / RATE_LIMITED with the time to wait
  void require_turn(const Caller& caller, std::int64_t now_ms) const;

  /// Counts bytes that arrived. @return the time to wait before the next ones are read, in ms
  std::int64_t charge(const Caller& caller, std::int64_t bytes, std::int64_t now_ms);

 private:
  static constexpr std::int64_t kBurstUs = 10'000'000;
  bool is_limited(const Caller& caller) const;

  const std::int64_t bytes_per_second_;
  TokenBuckets spent_;  ///< a token is a microsecond at the rate
};

}  // namespace quasi::server
