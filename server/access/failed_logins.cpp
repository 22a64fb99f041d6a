#include "server/access/failed_logins.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstddef>

namespace quasi::server {
namespace {

constexpr std::size_t kMostPeers = 4'096;
constexpr std::int64_t kMinute_us = 60'000'000;

/// Returns whole milliseconds that last at least this long.
std::int64_t to_ms(std::int64_t us) { return (us + 999) / 1'000; }

}  // namespace

std::int64_t FailedLogins::wait_us(std::int64_t full_us, std::int64_t now_us) const {
  return std::max<std::int64_t>(0, full_us - now_us - (kMinute_us - interval_us_));
}

std::int64_t FailedLogins::wait_ms(const std::string& host, std::int64_t now_ms) const {
  const std::lock_guard lock(mutex_);
  const auto known = full_us_.find(host);
  return known == full_us_.end() ? 0 : to_ms(wait_us(known->second, now_ms * 1'000));
}

std::int64_t FailedLogins::add(const std::string& host, std::int64_t now_ms) {
  const std::int64_t now_us = now_ms * 1'000;
  const std::lock_guard lock(mutex_);
  auto known = full_us_.find(host);
  if (known == full_us_.end()) {
    if (full_us_.size() >= kMostPeers)
      std::erase_if(full_us_, [&](const auto& each) { return each.second <= now_us; });
    if (full_us_.size() >= kMostPeers) return to_ms(interval_us_);
    known = full_us_.emplace(host, now_us).first;
  }
  const std::int64_t wait = wait_us(known->second, now_us);
  if (wait == 0) known->second = std::max(known->second, now_us) + interval_us_;
  return to_ms(wait);
}

std::string host_of_peer(std::string_view peer) {
  if (peer.starts_with("unix")) return "unix";
  if (peer.starts_with("ipv6:")) {
    // gRPC writes the brackets around an address as %5B and %5D.
    const std::size_t begin = peer.find_first_of("[B") + 1;
    const std::size_t end = peer.find_first_of("]%", begin);
    const std::string address(peer.substr(begin, end - begin));
    in6_addr bytes{};
    if (::inet_pton(AF_INET6, address.c_str(), &bytes) == 1) {
      std::fill(bytes.s6_addr + 8, bytes.s6_addr + 16, std::uint8_t{0});
      char network[INET6_ADDRSTRLEN];
      return ::inet_ntop(AF_INET6, &bytes, network, sizeof network);
    }
  }
  const std::size_t begin = peer.find(':') + 1;
  return std::string(peer.substr(begin, peer.rfind(':') - begin));
}

}  // namespace quasi::server
