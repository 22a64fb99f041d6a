#include "server/access/principal.hpp"

#include <openssl/rand.h>

#include <array>
#include <stdexcept>

#include "proto/wire/digest.hpp"
#include "server/access/sealed.hpp"

namespace quasi::server {
namespace {

template <std::size_t Size>
std::string random_text() {
  std::array<unsigned char, Size> bytes{};
  if (RAND_bytes(bytes.data(), Size) != 1)
    throw std::runtime_error("RAND_bytes: OpenSSL provides no random bytes");
  return to_base64url({reinterpret_cast<const char*>(bytes.data()), Size});
}

}  // namespace

std::string_view word_of(Role role) {
  switch (role) {
    case Role::kViewer:
      return "viewer";
    case Role::kUser:
      return "user";
    case Role::kOperator:
      return "operator";
    case Role::kAdmin:
      return "admin";
    case Role::kWorker:
      return "worker";
  }
  return "unknown";
}

NewToken make_token() {
  NewToken token;
  token.key_id = random_text<9>();  // 12 characters
  const std::string secret = random_text<32>();
  token.secret_sha256 = wire::sha256_bytes(secret);
  token.text = "qsi_" + token.key_id + "_" + secret;
  return token;
}

}  // namespace quasi::server
