#include "server/store/migrations/migrations.hpp"

namespace quasi::server {
namespace {

// The walls around the engine of an attempt. Both columns are NULL and empty until the worker
// reports the start of the engine.
constexpr char kIsolationOfAttempts[] = R"sql(
ALTER TABLE attempts ADD COLUMN isolated INTEGER CHECK (isolated IN (0, 1));
ALTER TABLE attempts ADD COLUMN walls TEXT NOT NULL DEFAULT '';
)sql";

// Listings by the beginning of a name. Labels have an index since version 1.
constexpr char kIndexOfNames[] = R"sql(
CREATE INDEX jobs_by_name ON jobs (name);
)sql";

// The people, programs and workers that make calls, and their tokens. A token is kept as the
// SHA-256 of its secret (I18). Roles are numbers of quasi.v1.Role.
constexpr char kPrincipals[] = R"sql(
CREATE TABLE principals (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  name       TEXT    NOT NULL UNIQUE,
  role       INTEGER NOT NULL CHECK (role BETWEEN 1 AND 5),
  tenant     TEXT    NOT NULL,
  uid        INTEGER UNIQUE CHECK (uid >= 0),
  created_ms INTEGER NOT NULL,
  disabled   INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1))
) STRICT;

CREATE TABLE tokens (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  key_id        TEXT    NOT NULL UNIQUE CHECK (length(key_id) = 12),
  secret_sha256 BLOB    NOT NULL CHECK (length(secret_sha256) = 32),
  principal_id  INTEGER NOT NULL REFERENCES principals (id),
  created_ms    INTEGER NOT NULL,
  expires_ms    INTEGER NOT NULL,
  revoked_ms    INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TRIGGER principals_stay BEFORE DELETE ON principals
BEGIN SELECT RAISE(ABORT, 'a principal is disabled, not deleted'); END;
CREATE TRIGGER tokens_keep_their_secret
BEFORE UPDATE OF key_id, secret_sha256, principal_id ON tokens
BEGIN SELECT RAISE(ABORT, 'I18: the secret of a token does not change'); END;
CREATE TRIGGER tokens_stay_revoked BEFORE UPDATE OF revoked_ms ON tokens
WHEN OLD.revoked_ms > 0 AND NEW.revoked_ms <> OLD.revoked_ms
BEGIN SELECT RAISE(ABORT, 'a revoked token stays revoked'); END;
)sql";

constexpr Migration kMigrations[] = {
    {1, kVersion1},
    {2, kIsolationOfAttempts},
    {3, kIndexOfNames},
    {4, kPrincipals},
};

}  // namespace

std::span<const Migration> migrations() { return kMigrations; }

}  // namespace quasi::server
