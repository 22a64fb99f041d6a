#pragma once

#include <cstdint>
#include <string_view>

#include "server/access/principal.hpp"
#include "server/access/token_buckets.hpp"

namespace quasi::server {

/// Limits how often each principal may submit, and how often it may make other unary calls: what
/// ten seconds allow at once, and then N a second. Workers, whose calls follow from jobs, and the
/// owner of a server without tokens have no limit. Thread-safe.
class CallRates {
 public:
  /// @param submits_per_second, calls_per_second  N, at least 1
  CallRates(std::int64_t submits_per_second, std::int64_t calls_per_second)
      : submits_per_second_(submits_per_second),
        calls_per_second_(calls_per_second),
        submits_(1'000'000 / submits_per_second, 10'000'000),
        calls_(1'000'000 / calls_per_second, 10'000'000) {}

  /// Counts a call of a principal.
  /// @param method  name of the method without its service
  /// @param now_ms  the monotonic clock
  /// @throws Refused RESOURCE_EXHAUSTED / RATE_LIMITED with the time to wait
  void charge(const Caller& caller, std::string_view method, std::int64_t now_ms);

 private:
  std::int64_t submits_per_second_, calls_per_second_;
  TokenBuckets submits_, calls_;
};

}  // namespace quasi::server
