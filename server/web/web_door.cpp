#include "server/web/web_door.hpp"

#include <fstream>
#include <sstream>

#include "proto/wire/channel.hpp"

namespace quasi::server {
namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

WebParts at(WebParts parts, const std::string& address) {
  parts.is_loopback = wire::is_local_address(address);
  return parts;
}

WebServer::Place place_of(const std::string& address, const TlsFiles& tls) {
  if (wire::is_local_address(address)) return {.address = address};
  return {
      .address = address, .certificate_pem = text_of(tls.certificate), .key_pem = text_of(tls.key)};
}

}  // namespace

WebDoor::WebDoor(const std::string& address, const TlsFiles& tls, WebParts parts)
    : site_(at(std::move(parts), address)),
      server_(place_of(address, tls),
              [this](const WebRequest& request) { return site_.answer(request); }) {}

}  // namespace quasi::server
