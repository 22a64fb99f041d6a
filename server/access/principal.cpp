#include "server/access/principal.hpp"

#include <openssl/rand.h>

#include <stdexcept>

#include "proto/wire/access/base64url.hpp"
#include "proto/wire/access/join_code.hpp"
#include "proto/wire/digest.hpp"

namespace quasi::server {
namespace {

std::string random_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(size)) != 1)
    throw std::runtime_error("RAND_bytes: OpenSSL provides no random bytes");
  return bytes;
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
  token.key_id = wire::to_base64url(random_bytes(9));  // 12 characters
  const std::string secret = wire::to_base64url(random_bytes(32));
  token.secret_sha256 = wire::sha256_bytes(secret);
  token.text = "qsi_" + token.key_id + "_" + secret;
  return token;
}

std::int64_t usual_token_days(Role role) { return role == Role::kWorker ? 365 : 90; }

NewCode make_code() {
  NewCode code{.secret = random_bytes(wire::kCodeSecretBytes), .secret_sha256 = {}};
  code.secret_sha256 = wire::sha256_bytes(code.secret);
  return code;
}

}  // namespace quasi::server
