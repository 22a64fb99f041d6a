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

// A deleted job keeps its row, its attempts and its state events, so that numbers of events have no
// gaps and past use is known. Its specification, results and files go. Only final jobs are deleted.
constexpr char kDeletedJobs[] = R"sql(
ALTER TABLE jobs ADD COLUMN deleted_ms INTEGER NOT NULL DEFAULT 0 CHECK (deleted_ms >= 0);
ALTER TABLE jobs ADD COLUMN logs_removed INTEGER NOT NULL DEFAULT 0 CHECK (logs_removed IN (0, 1));
CREATE INDEX jobs_ended ON jobs (ended_ms) WHERE state >= 7 AND deleted_ms = 0;
CREATE INDEX jobs_with_logs_to_remove ON jobs (id) WHERE deleted_ms > 0 AND logs_removed = 0;

CREATE TRIGGER jobs_deleted_when_final BEFORE UPDATE OF deleted_ms ON jobs
WHEN NEW.deleted_ms <> OLD.deleted_ms AND (OLD.state < 7 OR OLD.deleted_ms > 0)
BEGIN SELECT RAISE(ABORT, 'I1: only a final job is deleted, and once'); END;
CREATE TRIGGER jobs_logs_removed_when_deleted BEFORE UPDATE OF logs_removed ON jobs
WHEN NEW.logs_removed > 0 AND OLD.deleted_ms = 0
BEGIN SELECT RAISE(ABORT, 'logs of a job stay until it is deleted'); END;

DROP TRIGGER jobs_spec_stays;
CREATE TRIGGER jobs_spec_stays BEFORE UPDATE OF spec, uid, kind, created_ms ON jobs
WHEN (NEW.spec <> OLD.spec AND NEW.deleted_ms = 0) OR NEW.uid <> OLD.uid OR NEW.kind <> OLD.kind
     OR NEW.created_ms <> OLD.created_ms
BEGIN SELECT RAISE(ABORT, 'I1: what was submitted does not change'); END;

DROP TRIGGER artifacts_do_not_go;
CREATE TRIGGER artifacts_do_not_go BEFORE DELETE ON artifacts
WHEN (SELECT deleted_ms FROM jobs WHERE id = OLD.job_id) = 0
BEGIN SELECT RAISE(ABORT, 'I2: an artefact goes with its job'); END;
CREATE TRIGGER job_inputs_stay BEFORE DELETE ON job_inputs
WHEN (SELECT deleted_ms FROM jobs WHERE id = OLD.job_id) = 0
BEGIN SELECT RAISE(ABORT, 'I1: an input goes with its job'); END;
)sql";

// The newest bytes of a log are rows, so that appending needs no sync of its file. `folded_bytes`
// is the length of the part that is in the file.
constexpr char kLogTails[] = R"sql(
CREATE TABLE log_tails (
  attempt_id INTEGER NOT NULL REFERENCES attempts (id),
  at_byte    INTEGER NOT NULL CHECK (at_byte >= 0),
  data       BLOB    NOT NULL,
  PRIMARY KEY (attempt_id, at_byte)
) STRICT;
ALTER TABLE attempts ADD COLUMN folded_bytes INTEGER NOT NULL DEFAULT 0 CHECK (folded_bytes >= 0);
UPDATE attempts SET folded_bytes = log_bytes;
CREATE INDEX attempts_with_tail ON attempts (id) WHERE folded_bytes < log_bytes;
CREATE TRIGGER attempts_folded_only_grows BEFORE UPDATE OF folded_bytes ON attempts
WHEN NEW.folded_bytes < OLD.folded_bytes OR NEW.folded_bytes > NEW.log_bytes
BEGIN SELECT RAISE(ABORT, 'the part of a log in its file only grows'); END;
)sql";

// Owners of jobs and holders of blobs. Jobs of earlier versions belong to the owner of the server.
// A principal holds a blob if they sent it, or if a job of theirs made it. A tenant holds the blobs
// of the jobs that are visible to it (I15). `visibility` has the numbers of quasi.v1.Visibility.
constexpr char kOwners[] = R"sql(
ALTER TABLE jobs ADD COLUMN owner_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN tenant TEXT NOT NULL DEFAULT 'default';
ALTER TABLE jobs ADD COLUMN visibility INTEGER NOT NULL DEFAULT 1 CHECK (visibility IN (1, 2));
CREATE INDEX jobs_by_owner ON jobs (owner_id, id);
CREATE INDEX jobs_of_tenants ON jobs (tenant, id) WHERE visibility = 2;

CREATE TABLE blob_holders (
  digest       TEXT    NOT NULL,
  principal_id INTEGER NOT NULL,
  PRIMARY KEY (digest, principal_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE blob_tenants (
  digest TEXT NOT NULL,
  tenant TEXT NOT NULL,
  PRIMARY KEY (digest, tenant)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER owners_do_not_change BEFORE UPDATE OF owner_id, tenant, visibility ON jobs
BEGIN SELECT RAISE(ABORT, 'I15: the owner and the visibility of a job do not change'); END;
CREATE TRIGGER inputs_belong_to_tenants AFTER INSERT ON job_inputs
BEGIN
  INSERT OR IGNORE INTO blob_tenants
    SELECT NEW.digest, tenant FROM jobs WHERE id = NEW.job_id AND visibility = 2;
END;
CREATE TRIGGER artifacts_belong_to_owners AFTER INSERT ON artifacts
BEGIN
  INSERT OR IGNORE INTO blob_holders
    SELECT NEW.digest, owner_id FROM jobs WHERE id = NEW.job_id AND owner_id > 0;
  INSERT OR IGNORE INTO blob_tenants
    SELECT NEW.digest, tenant FROM jobs WHERE id = NEW.job_id AND visibility = 2;
END;
CREATE TRIGGER holders_go_with_their_blob AFTER DELETE ON blobs
BEGIN
  DELETE FROM blob_holders WHERE digest = OLD.digest;
  DELETE FROM blob_tenants WHERE digest = OLD.digest;
END;
)sql";

// One-time codes, each of which is exchanged for a token of its principal once. A code is kept as
// the SHA-256 of its secret (I18).
constexpr char kJoinCodes[] = R"sql(
CREATE TABLE join_codes (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  secret_sha256 BLOB    NOT NULL UNIQUE CHECK (length(secret_sha256) = 32),
  principal_id  INTEGER NOT NULL REFERENCES principals (id),
  created_ms    INTEGER NOT NULL,
  expires_ms    INTEGER NOT NULL,
  used_ms       INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TRIGGER join_codes_are_used_once BEFORE UPDATE ON join_codes WHEN OLD.used_ms > 0
BEGIN SELECT RAISE(ABORT, 'a code is used once'); END;
)sql";

// The audit keeps who did what as a chain of hashes (server/store/audit). The anchor stands for the
// rows that were removed by their age. Rows behind it neither change nor go.
constexpr char kAudit[] = R"sql(
CREATE TABLE audit (
  seq       INTEGER PRIMARY KEY AUTOINCREMENT,
  time_ms   INTEGER NOT NULL,
  principal TEXT    NOT NULL,
  peer      TEXT    NOT NULL,
  method    TEXT    NOT NULL,
  target    TEXT    NOT NULL,
  outcome   TEXT    NOT NULL,
  detail    TEXT    NOT NULL,
  sha256    BLOB    NOT NULL CHECK (length(sha256) = 32)
) STRICT;
CREATE TABLE audit_anchor (
  id     INTEGER PRIMARY KEY CHECK (id = 1),
  seq    INTEGER NOT NULL,
  sha256 BLOB    NOT NULL CHECK (length(sha256) = 32)
) STRICT;
INSERT INTO audit_anchor VALUES (1, 0, zeroblob(32));

CREATE TRIGGER audit_does_not_change BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'a row of the audit does not change'); END;
CREATE TRIGGER audit_goes_up_to_its_anchor BEFORE DELETE ON audit
WHEN OLD.seq > (SELECT seq FROM audit_anchor)
BEGIN SELECT RAISE(ABORT, 'a row of the audit goes by its age alone'); END;
CREATE TRIGGER audit_anchor_moves_to_a_row BEFORE UPDATE ON audit_anchor
WHEN NEW.seq <= OLD.seq OR NEW.sha256 IS NOT (SELECT sha256 FROM audit WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'the anchor of the audit moves to a newer row of it'); END;
CREATE TRIGGER audit_anchor_stays BEFORE DELETE ON audit_anchor
BEGIN SELECT RAISE(ABORT, 'the audit has one anchor'); END;
)sql";

// Tokens are narrowed to scopes, and workers are bound to pools. Bit s-1 of `scopes` stands for the
// number s of quasi.v1.TokenScope.
constexpr char kScopesAndPools[] = R"sql(
ALTER TABLE tokens ADD COLUMN scopes INTEGER NOT NULL DEFAULT 15 CHECK (scopes BETWEEN 1 AND 15);
ALTER TABLE principals ADD COLUMN pool TEXT NOT NULL DEFAULT '';
CREATE TRIGGER tokens_keep_their_scopes BEFORE UPDATE OF scopes ON tokens
WHEN NEW.scopes <> OLD.scopes
BEGIN SELECT RAISE(ABORT, 'the scopes of a token do not change'); END;
)sql";

constexpr Migration kMigrations[] = {
    {1, kVersion1},   {2, kIsolationOfAttempts}, {3, kIndexOfNames},
    {4, kPrincipals}, {5, kDeletedJobs},         {6, kLogTails},
    {7, kOwners},     {8, kJoinCodes},           {9, kAudit},
    {10, kVersion10}, {11, kScopesAndPools},     {12, kVersion12},
    {13, kVersion13}, {14, kVersion14},          {15, kVersion15},
    {16, kVersion16}, {17, kVersion17},
};

}  // namespace

std::span<const Migration> migrations() { return kMigrations; }

}  // namespace quasi::server
