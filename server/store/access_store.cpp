#include "server/store/access_store.hpp"

#include "server/store/query.hpp"

namespace quasi::server {
namespace {

constexpr char kPrincipals[] =
    "SELECT id, name, role, tenant, uid, created_ms, disabled, pool FROM principals";

Principal read_principal(const Statement& row) {
  Principal principal{.id = row.integer(0),
                      .name = row.text(1),
                      .role = static_cast<Role>(row.small(2)),
                      .tenant = row.text(3),
                      .uid = std::nullopt,
                      .created_ms = row.integer(5),
                      .disabled = row.integer(6) != 0,
                      .pool = row.text(7)};
  if (!row.is_null(4)) principal.uid = row.integer(4);
  return principal;
}

TokenRow read_token(const Statement& row) {
  return {.id = row.integer(0),
          .key_id = row.text(1),
          .secret_sha256 = row.text(2),
          .principal_id = row.integer(3),
          .created_ms = row.integer(4),
          .expires_ms = row.integer(5),
          .revoked_ms = row.integer(6),
          .scopes = TokenScopes::from_bits(static_cast<std::uint8_t>(row.small(7)))};
}

}  // namespace

AccessTables AccessStore::all() {
  static const std::string kAll = std::string(kPrincipals) + " ORDER BY id";
  AccessTables tables;
  tables.principals = quasi::server::all<Principal>(sql(kAll), read_principal);
  tables.tokens = quasi::server::all<TokenRow>(
      sql("SELECT id, key_id, secret_sha256, principal_id, created_ms, expires_ms, revoked_ms, "
          "scopes FROM tokens ORDER BY id"),
      read_token);
  return tables;
}

std::optional<Principal> AccessStore::find(const std::string& name) {
  static const std::string kByName = std::string(kPrincipals) + " WHERE name=?";
  return one<Principal>(sql(kByName).bind(name), read_principal);
}

Principal AccessStore::save(Principal principal) {
  if (principal.id != 0) {
    sql("UPDATE principals SET role=?, tenant=?, uid=?, disabled=?, pool=? WHERE id=?")
        .run(principal.role, principal.tenant, principal.uid, principal.disabled, principal.pool,
             principal.id);
    return principal;
  }
  sql("INSERT INTO principals (name, role, tenant, uid, created_ms, disabled, pool) "
      "VALUES (?,?,?,?,?,?,?)")
      .run(principal.name, principal.role, principal.tenant, principal.uid, principal.created_ms,
           principal.disabled, principal.pool);
  principal.id = database_.last_insert_id();
  return principal;
}

void AccessStore::insert_token(const TokenRow& token) {
  sql("INSERT INTO tokens (key_id, secret_sha256, principal_id, created_ms, expires_ms, scopes) "
      "VALUES (?,?,?,?,?,?)")
      .run(token.key_id, Statement::Blob{token.secret_sha256}, token.principal_id, token.created_ms,
           token.expires_ms, static_cast<std::int64_t>(token.scopes.bits()));
}

bool AccessStore::end_token(const std::string& key_id, std::int64_t expires_ms,
                            std::int64_t revoked_ms) {
  sql("UPDATE tokens SET expires_ms=min(expires_ms, ?1), "
      "revoked_ms=CASE WHEN revoked_ms > 0 THEN revoked_ms ELSE ?2 END WHERE key_id=?3")
      .run(expires_ms, revoked_ms, key_id);
  return database_.changes() > 0;
}

void AccessStore::insert_code(const CodeRow& code) {
  sql("INSERT INTO join_codes (secret_sha256, principal_id, created_ms, expires_ms, scopes) "
      "VALUES (?,?,?,?,?)")
      .run(Statement::Blob{code.secret_sha256}, code.principal_id, code.created_ms, code.expires_ms,
           static_cast<std::int64_t>(code.scopes.bits()));
}

std::optional<CodeRow> AccessStore::find_code(const std::string& secret_sha256) {
  Statement& statement =
      sql("SELECT id, secret_sha256, principal_id, created_ms, expires_ms, used_ms, scopes "
          "FROM join_codes WHERE secret_sha256=?");
  return one<CodeRow>(statement.bind(Statement::Blob{secret_sha256}), [](const Statement& row) {
    return CodeRow{.id = row.integer(0),
                   .secret_sha256 = row.text(1),
                   .principal_id = row.integer(2),
                   .created_ms = row.integer(3),
                   .expires_ms = row.integer(4),
                   .used_ms = row.integer(5),
                   .scopes = TokenScopes::from_bits(static_cast<std::uint8_t>(row.small(6)))};
  });
}

void AccessStore::use_code(std::int64_t id, std::int64_t now_ms) {
  sql("UPDATE join_codes SET used_ms=? WHERE id=?").run(now_ms, id);
}

}  // namespace quasi::server
