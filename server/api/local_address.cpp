#include "server/api/local_address.hpp"

#include <algorithm>

#include "proto/wire/channel.hpp"

namespace quasi::server {
namespace {

[[noreturn]] void refuse(const std::string& address, const std::string& why) {
  throw BadConfiguration("listen: \"" + address + "\" " + why +
                         "; write HOST:PORT, like 127.0.0.1:7460, [::1]:7460 or, with a "
                         "certificate, 0.0.0.0:7460; or write unix:/path");
}

}  // namespace

void require_address(const std::string& address) {
  if (address.starts_with("unix:")) {
    if (address.size() == 5) refuse(address, "names no path");
    return;
  }
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size())
    refuse(address, "has no host or no port");
  const std::string port = address.substr(colon + 1);
  if (port.size() > 5 ||
      !std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; }) ||
      std::stoi(port) > 65'535)
    refuse(address, "has no port in 0...65535");
}

void require_local(const std::string& address) {
  require_address(address);
  if (!wire::is_local_address(address))
    throw BadConfiguration(
        "listen: \"" + address +
        "\" is not a loopback address, and without a certificate everything would travel in plain "
        "text; set tls_certificate and tls_key (quasi-server init makes them), or listen at "
        "127.0.0.1:PORT, [::1]:PORT, localhost:PORT or unix:/path");
}

}  // namespace quasi::server
