#include "server/api/local_address.hpp"

#include <algorithm>
#include <cctype>

namespace quasi::server {

void require_local(const std::string& address) {
  const auto refuse = [&](const std::string& why) {
    throw BadConfiguration(
        "listen: \"" + address + "\" " + why +
        "; quasi-server has no users and no TLS yet, so any program that reaches it may submit "
        "jobs and "
        "read "
        "results. It serves loopback addresses (127.0.0.1:PORT, [::1]:PORT, localhost:PORT) and "
        "Unix sockets (unix:/path) only; reach it from elsewhere through an SSH tunnel");
  };
  if (address.starts_with("unix:")) {
    if (address.size() == 5) refuse("names no path");
    return;
  }
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size()) refuse("has no port");
  const std::string host = address.substr(0, colon);
  const std::string port = address.substr(colon + 1);
  if (port.size() > 5 ||
      !std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; }) ||
      std::stoi(port) > 65'535)
    refuse("has no port in 0...65535");
  if (host == "localhost" || host == "[::1]") return;
  // All of 127.0.0.0/8 is loopback. A host is accepted only if it consists of four plain numbers.
  int numbers = 0;
  int value = -1;
  bool sound = true;
  int first = -1;
  for (std::size_t i = 0; i <= host.size(); ++i) {
    if (i == host.size() || host[i] == '.') {
      sound = sound && value >= 0 && value <= 255;
      if (numbers++ == 0) first = value;
      value = -1;
    } else if (host[i] >= '0' && host[i] <= '9' && value < 1'000) {
      value = std::max(value, 0) * 10 + (host[i] - '0');
    } else {
      sound = false;
    }
  }
  if (!sound || numbers != 4 || first != 127) refuse("is not a loopback address");
}

}  // namespace quasi::server
