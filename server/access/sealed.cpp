#include "server/access/sealed.hpp"

#include <openssl/crypto.h>

#include "proto/wire/access/base64url.hpp"
#include "proto/wire/digest.hpp"

namespace quasi::server {
namespace {

constexpr std::size_t kMacBytes = 16;

std::string mac_of(std::string_view key, std::string_view purpose, std::string_view binding,
                   std::string_view payload) {
  std::string message;
  for (const std::string_view part : {purpose, binding, payload}) {
    message += std::to_string(part.size()) + ":";
    message += part;
  }
  const auto mac = wire::hmac_sha256(key, message);
  return std::string(reinterpret_cast<const char*>(mac.data()), kMacBytes);
}

}  // namespace

std::string seal_token(std::string_view key, std::string_view purpose, std::string_view binding,
                       std::string_view payload) {
  return wire::to_base64url(mac_of(key, purpose, binding, payload) + std::string(payload));
}

std::optional<std::string> open_token(std::string_view key, std::string_view purpose,
                                      std::string_view binding, std::string_view token) {
  const auto bytes = wire::from_base64url(token);
  if (!bytes || bytes->size() < kMacBytes) return std::nullopt;
  std::string payload = bytes->substr(kMacBytes);
  const std::string mac = mac_of(key, purpose, binding, payload);
  if (CRYPTO_memcmp(mac.data(), bytes->data(), kMacBytes) != 0) return std::nullopt;
  return payload;
}

}  // namespace quasi::server
