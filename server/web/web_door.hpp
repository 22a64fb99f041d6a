#pragma once

#include <string>

#include "server/api/tls_credentials.hpp"
#include "server/web/web_server.hpp"
#include "server/web/web_site.hpp"

namespace quasi::server {

/// The address of metrics with everything behind it. On loopback it speaks
/// plain text and shows sums to everybody. Elsewhere it speaks TLS and asks for a token.
class WebDoor {
 public:
  /// `parts.is_loopback` follows from the address.
  /// @throws BadConfiguration
  WebDoor(const std::string& address, const TlsFiles& tls, WebParts parts);
  const std::string& address() const { return server_.address(); }

 private:
  WebSite site_;
  WebServer server_;
};

}  // namespace quasi::server
