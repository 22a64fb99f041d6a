#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/access/token_buckets.hpp"

namespace quasi::server {

/// Limits the failed logins of each peer, whose key is `host_of_peer`: N tries at once, and then
/// one every 60/N seconds.
class FailedLogins : public TokenBuckets {
 public:
  /// @param per_minute  N, at least 1
  explicit FailedLogins(std::int64_t per_minute)
      : TokenBuckets(60'000'000 / per_minute, 60'000'000) {}
};

/// Returns the machine of a peer without its port: the IPv4 address, 64 bits of IPv6 (one
/// network may use all of the others), or "unix".
/// @param peer  as gRPC names it, e.g. "ipv4:192.0.2.7:40312" or "ipv6:%5B2001:db8::7%5D:40312"
std::string host_of_peer(std::string_view peer);

}  // namespace quasi::server
