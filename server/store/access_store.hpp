#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/access/principal.hpp"
#include "server/store/sqlite.hpp"

namespace quasi::server {

/// The rows of principals and tokens. The caller opens the transactions. One thread uses it.
class AccessStore {
 public:
  explicit AccessStore(Database& database) : database_(database), statements_(database) {}

  AccessTables all();
  std::optional<Principal> find(const std::string& name);
  /// Inserts a principal whose id is 0, otherwise changes all but its name.
  /// @return the principal with its id.
  Principal save(Principal principal);
  void insert_token(const TokenRow& token);
  /// Lets a token end at `expires_ms` if it would live longer; `revoked_ms` above 0 ends it now.
  /// @return false if there is no such token.
  bool end_token(const std::string& key_id, std::int64_t expires_ms, std::int64_t revoked_ms);

  void insert_code(const CodeRow& code);
  /// The code whose secret has this hash.
  std::optional<CodeRow> find_code(const std::string& secret_sha256);
  /// Marks a code as used. @throws SqliteError if it was used before.
  void use_code(std::int64_t id, std::int64_t now_ms);

 private:
  Statement& sql(std::string_view text) { return statements_.get(text); }

  Database& database_;
  StatementCache statements_;
};

}  // namespace quasi::server
