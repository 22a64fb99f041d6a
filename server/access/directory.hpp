#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "server/access/principal.hpp"

namespace quasi::server {

/// Finds the principal behind a token. It answers from memory; `replace` gives it the tables of the
/// database after each change of them. Thread-safe.
///
/// Two kinds of tokens open a call. A token of `make_token` is known by its hash. A session token
/// names a principal and an end; it carries a MAC of the server's session key and is not stored.
class Directory {
 public:
  explicit Directory(std::string session_key);

  void replace(const AccessTables& tables);

  /// @throws Refused UNAUTHENTICATED: TOKEN_EXPIRED for a token whose time is over, TOKEN_INVALID
  ///         for an unknown, wrong, revoked or disabled one. An unknown key id costs the work of a
  ///         known one.
  Caller authenticate(std::string_view token, std::int64_t now_ms) const;

  /// Checks that the token of an admitted call still opens calls, with the rights that it had.
  /// @throws Refused UNAUTHENTICATED: TOKEN_EXPIRED or TOKEN_INVALID, with the metadata
  ///         admitted=true; UNAVAILABLE / RIGHTS_CHANGED if role or tenant are others by now.
  void require_still(const Caller& caller, std::int64_t now_ms) const;

  /// A session token for this principal.
  std::string open_session(std::int64_t principal_id, std::int64_t expires_ms) const;

  std::optional<Principal> find_uid(std::int64_t uid) const;

 private:
  struct Index;
  std::shared_ptr<const Index> index() const;

  const std::string session_key_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Index> index_;
};

}  // namespace quasi::server
