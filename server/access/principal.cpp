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

std::string_view word_of(TokenScope scope) {
  switch (scope) {
    case TokenScope::kRead:
      return "read";
    case TokenScope::kSubmit:
      return "submit";
    case TokenScope::kCancel:
      return "cancel";
    case TokenScope::kAdmin:
      return "admin";
  }
  return "unknown";
}

std::vector<TokenScope> TokenScopes::list() const {
  std::vector<TokenScope> scopes;
  for (const TokenScope scope :
       {TokenScope::kRead, TokenScope::kSubmit, TokenScope::kCancel, TokenScope::kAdmin})
    if (has(scope)) scopes.push_back(scope);
  return scopes;
}

std::string words_of(const TokenScopes& scopes) {
  std::string words;
  for (const TokenScope scope : scopes.list())
    words += (words.empty() ? "" : ",") + std::string(word_of(scope));
  return words;
}

NewToken make_token() {
  NewToken token;
  // Nine bytes give 12 characters. An id that began with '-' would be a flag of
  // `quasi admin revoke KEY`.
  do token.key_id = wire::to_base64url(random_bytes(9));
  while (token.key_id.starts_with('-'));
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
