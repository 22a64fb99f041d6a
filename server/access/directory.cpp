#include "server/access/directory.hpp"

#include <openssl/crypto.h>

#include <charconv>
#include <map>

#include "proto/wire/digest.hpp"
#include "server/access/sealed.hpp"
#include "server/queue/refused.hpp"

namespace quasi::server {
namespace {

constexpr std::string_view kTokenPrefix = "qsi_";
constexpr std::string_view kSessionPrefix = "qsu_";
constexpr std::size_t kKeyIdBytes = 12;

Refused invalid() {
  return Refused(Refusal::kUnauthenticated, "TOKEN_INVALID",
                 "the token is not valid: it is wrong, revoked, or its owner is disabled; ask the "
                 "operator of the server for a new one");
}

Refused expired() {
  return Refused(Refusal::kUnauthenticated, "TOKEN_EXPIRED",
                 "the token has expired; ask the operator of the server for a new one, and compare "
                 "the clocks of both machines");
}

/// Begins a sentence about a call that is open: "the token KEY of ada" or "the session of ada".
std::string token_of(const Caller& caller) {
  return caller.key_id.empty() ? "the session of " + caller.name
                               : "the token " + caller.key_id + " of " + caller.name;
}

/// Refuses the rest of a call that was admitted. A client can tell it from a call that was never
/// admitted, and calls again if its token may have been renewed meanwhile.
Refused ended(std::string_view reason, const std::string& sentence) {
  return Refused(Refusal::kUnauthenticated, reason, sentence).with("admitted", "true");
}

Caller to_caller(const Principal& principal) {
  return {.principal_id = principal.id,
          .name = principal.name,
          .role = principal.role,
          .tenant = principal.tenant,
          .pool = principal.pool};
}

std::int64_t number_of(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

struct Directory::Index {
  std::map<std::int64_t, Principal> principals;
  std::map<std::int64_t, std::int64_t> principal_of_uid;
  std::map<std::string, TokenRow, std::less<>> tokens;

  const Principal& active(std::int64_t id) const {
    const auto found = principals.find(id);
    if (found == principals.end() || found->second.disabled) throw invalid();
    return found->second;
  }
};

Directory::Directory(std::string session_key)
    : session_key_(std::move(session_key)), index_(std::make_shared<const Index>()) {}

void Directory::replace(const AccessTables& tables) {
  auto index = std::make_shared<Index>();
  for (const Principal& principal : tables.principals) {
    index->principals[principal.id] = principal;
    if (principal.uid) index->principal_of_uid[*principal.uid] = principal.id;
  }
  for (const TokenRow& token : tables.tokens) index->tokens[token.key_id] = token;
  const std::lock_guard lock(mutex_);
  index_ = std::move(index);
}

std::shared_ptr<const Directory::Index> Directory::index() const {
  const std::lock_guard lock(mutex_);
  return index_;
}

Caller Directory::authenticate(std::string_view token, std::int64_t now_ms) const {
  const auto known = index();
  if (token.starts_with(kSessionPrefix)) {
    const auto payload =
        open_token(session_key_, "session", "", token.substr(kSessionPrefix.size()));
    if (!payload) throw invalid();
    const std::size_t colon = payload->find(':');
    if (colon == std::string::npos) throw invalid();
    const std::int64_t expires_ms = number_of(std::string_view(*payload).substr(colon + 1));
    if (expires_ms <= now_ms) throw expired();
    Caller caller =
        to_caller(known->active(number_of(std::string_view(*payload).substr(0, colon))));
    caller.expires_ms = expires_ms;
    return caller;
  }
  if (!token.starts_with(kTokenPrefix) || token.size() <= kTokenPrefix.size() + kKeyIdBytes)
    throw invalid();
  const auto found = known->tokens.find(token.substr(kTokenPrefix.size(), kKeyIdBytes));
  const auto hash = wire::sha256_bytes(token.substr(kTokenPrefix.size() + kKeyIdBytes + 1));
  static const std::string kNoHash(32, '\0');
  const bool is_known = found != known->tokens.end();
  const std::string& expected = is_known ? found->second.secret_sha256 : kNoHash;
  const bool is_right = expected.size() == hash.size() &&
                        CRYPTO_memcmp(hash.data(), expected.data(), hash.size()) == 0;
  if (!is_known || !is_right || found->second.revoked_ms > 0) throw invalid();
  Caller caller = to_caller(known->active(found->second.principal_id));
  if (found->second.expires_ms <= now_ms) throw expired();
  caller.scopes = found->second.scopes;
  caller.key_id = found->first;
  caller.expires_ms = found->second.expires_ms;
  return caller;
}

void Directory::require_still(const Caller& caller, std::int64_t now_ms) const {
  if (caller.principal_id == 0) return;
  const auto known = index();
  std::int64_t expires_ms = caller.expires_ms;
  if (!caller.key_id.empty()) {
    const auto token = known->tokens.find(caller.key_id);
    if (token == known->tokens.end() || token->second.revoked_ms > 0)
      throw ended("TOKEN_INVALID",
                  token_of(caller) +
                      " was revoked while the call was open, so the server ended the call; ask the "
                      "operator of the server for a new one");
    expires_ms = token->second.expires_ms;
  }
  const auto found = known->principals.find(caller.principal_id);
  if (found == known->principals.end() || found->second.disabled)
    throw ended("TOKEN_INVALID", caller.name +
                                     " was disabled while the call was open, so the server ended "
                                     "the call; ask the operator of the server");
  if (expires_ms <= now_ms)
    throw ended("TOKEN_EXPIRED",
                token_of(caller) +
                    " expired while the call was open, so the server ended the call; call again "
                    "with a newer token, or ask the operator of the server for one");
  if (found->second.role != caller.role || found->second.tenant != caller.tenant)
    throw Refused(Refusal::kUnavailable, "RIGHTS_CHANGED",
                  "an admin changed the role or the tenant of " + caller.name +
                      " while the call was open; call again")
        .retry_in(200);
}

std::string Directory::open_session(std::int64_t principal_id, std::int64_t expires_ms) const {
  return std::string(kSessionPrefix) +
         seal_token(session_key_, "session", "",
                    std::to_string(principal_id) + ":" + std::to_string(expires_ms));
}

std::optional<Principal> Directory::find_uid(std::int64_t uid) const {
  const auto known = index();
  const auto found = known->principal_of_uid.find(uid);
  if (found == known->principal_of_uid.end()) return std::nullopt;
  return known->principals.at(found->second);
}

}  // namespace quasi::server
