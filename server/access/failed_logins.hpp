#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace quasi::server {

/// Limits the failed logins of each peer. A peer has N tries a minute: N at once, and then one
/// every 60/N seconds. Memory is bounded: at most 4,096 peers are known, and while they all are
/// waiting a further peer has no try. Thread-safe.
class FailedLogins {
 public:
  /// @param per_minute  N, at least 1
  explicit FailedLogins(std::int64_t per_minute) : interval_us_(60'000'000 / per_minute) {}

  /// Returns the time until the peer may fail again; 0 if it may now.
  /// @param host    the peer as `host_of_peer` names it
  /// @param now_ms  the monotonic clock
  std::int64_t wait_ms(const std::string& host, std::int64_t now_ms) const;

  /// Counts a failed login if the peer has a try. @return 0, or the time until the peer has one.
  std::int64_t add(const std::string& host, std::int64_t now_ms);

 private:
  std::int64_t wait_us(std::int64_t full_us, std::int64_t now_us) const;

  const std::int64_t interval_us_;
  mutable std::mutex mutex_;
  /// Holds the moment from which each peer has all its tries. A peer without a row has them all.
  std::map<std::string, std::int64_t> full_us_;
};

/// Returns the machine of a peer without its port: the IPv4 address, 64 bits of IPv6 (one
/// network may use all of the others), or "unix".
/// @param peer  as gRPC names it, e.g. "ipv4:192.0.2.7:40312" or "ipv6:%5B2001:db8::7%5D:40312"
std::string host_of_peer(std::string_view peer);

}  // namespace quasi::server
