#include "server/access/failed_logins.hpp"

#include <arpa/inet.h>

#include <algorithm>

namespace quasi::server {
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
