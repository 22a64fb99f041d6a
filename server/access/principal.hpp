#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Begin here: server/access answers two questions about a call: who makes it, and may they make
/// it? principal.hpp holds the people and their tokens, directory.hpp finds the caller of a call,
/// and rules.hpp says which role may call which method. Nothing here uses gRPC or the database.
namespace quasi::server {

/// The numbers are those of quasi.v1.Role. The first four are ordered: each may do what the ones
/// before it may do. A worker runs jobs and is none of them.
enum class Role : std::uint8_t { kViewer = 1, kUser = 2, kOperator = 3, kAdmin = 4, kWorker = 5 };

/// The word for a role, e.g. "operator".
std::string_view word_of(Role role);

/// Names a use to which a token can be narrowed. The numbers are those of quasi.v1.TokenScope.
enum class TokenScope : std::uint8_t { kRead = 1, kSubmit = 2, kCancel = 3, kAdmin = 4 };

/// Returns the word for a scope, e.g. "submit".
std::string_view word_of(TokenScope scope);

/// Holds a set of scopes.
class TokenScopes {
 public:
  constexpr TokenScopes() = default;
  constexpr TokenScopes(std::initializer_list<TokenScope> scopes) {
    for (const TokenScope scope : scopes) add(scope);
  }
  /// Returns every scope: such a token has all rights of its owner.
  static constexpr TokenScopes every() {
    return {TokenScope::kRead, TokenScope::kSubmit, TokenScope::kCancel, TokenScope::kAdmin};
  }
  /// @param bits  value of `bits` of another set
  static constexpr TokenScopes from_bits(std::uint8_t bits) {
    TokenScopes scopes;
    scopes.bits_ = bits & every().bits_;
    return scopes;
  }
  constexpr void add(TokenScope scope) {
    bits_ = static_cast<std::uint8_t>(bits_ | 1U << (static_cast<unsigned>(scope) - 1));
  }
  constexpr bool has(TokenScope scope) const { return meets({scope}); }
  /// True if the two sets share a scope.
  constexpr bool meets(const TokenScopes& other) const { return (bits_ & other.bits_) != 0; }
  constexpr bool is_empty() const { return bits_ == 0; }
  /// Bit s-1 stands for the scope of number s.
  constexpr std::uint8_t bits() const { return bits_; }
  /// Returns the scopes of the set, ascending.
  std::vector<TokenScope> list() const;

  bool operator==(const TokenScopes&) const = default;

 private:
  std::uint8_t bits_ = 0;
};

/// Returns the words of a set, e.g. "read,submit".
std::string words_of(const TokenScopes& scopes);

/// Somebody who makes calls: a person, a program or a worker.
struct Principal {
  std::int64_t id = 0;
  std::string name;
  Role role = Role::kUser;
  std::string tenant;               ///< the group whose members may see each other's shared work
  std::optional<std::int64_t> uid;  ///< user of this machine, on a Unix socket
  std::int64_t created_ms = 0;
  bool disabled = false;
  std::string pool;  ///< the only pool in which a worker may register; "": any

  bool operator==(const Principal&) const = default;
};

/// A token as the server keeps it. The secret itself is known to its owner alone.
struct TokenRow {
  std::int64_t id = 0;
  std::string key_id;         ///< public part of the token, 12 characters
  std::string secret_sha256;  ///< 32 bytes
  std::int64_t principal_id = 0;
  std::int64_t created_ms = 0;
  std::int64_t expires_ms = 0;
  std::int64_t revoked_ms = 0;  ///< 0: not revoked
  TokenScopes scopes = TokenScopes::every();

  bool operator==(const TokenRow&) const = default;
};

/// Everybody and every token, as one value.
struct AccessTables {
  std::vector<Principal> principals;
  std::vector<TokenRow> tokens;
};

/// The principal behind a call, as commands carry it.
struct Caller {
  std::int64_t principal_id = 0;  ///< 0: the owner of a server that asks Unix sockets for no tokens
  std::string name;
  Role role = Role::kViewer;
  std::string tenant;
  std::string pool;                           ///< of a worker that is bound to one
  TokenScopes scopes = TokenScopes::every();  ///< of the token of the call
  std::string key_id = {};                    ///< of the token; "" for a session of a Unix socket
  std::int64_t expires_ms = 0;                ///< end of the token; 0: the call needed none
};

/// A token of 256 random bits: "qsi_", the key id, "_" and the secret in base64url.
struct NewToken {
  std::string text;  ///< given to its owner once and never stored
  std::string key_id;
  std::string secret_sha256;
};
NewToken make_token();

/// Days for which a new token of this role is valid if nobody asks for another time.
std::int64_t usual_token_days(Role role);

/// A one-time code as the server keeps it. Its holder exchanges the secret for a token.
struct CodeRow {
  std::int64_t id = 0;
  std::string secret_sha256;  ///< 32 bytes
  std::int64_t principal_id = 0;
  std::int64_t created_ms = 0;
  std::int64_t expires_ms = 0;
  std::int64_t used_ms = 0;                   ///< 0: not used yet
  TokenScopes scopes = TokenScopes::every();  ///< of the token that it is exchanged for
};

/// The secret of a new code: 256 random bits.
struct NewCode {
  std::string secret;  ///< given away once and never stored
  std::string secret_sha256;
};
NewCode make_code();

}  // namespace quasi::server
