#include "server/store/migrations/migrations.hpp"

namespace quasi::server {

// Shares and quotas, and the use of the server by principals and tenants. A column that is NULL
// stands for the default of the server. Triggers count in the transaction of each change, so that
// counts and jobs agree after a crash. Submissions alone count without one. It would make each
// insertion of a batch a statement that SQLite can undo, and a third fewer jobs would go in. An
// attempt is charged from its grant to its end, at most its time limit, on the day of its end. A
// principal holds the blobs that they sent, and the results and checkpoints of their jobs, until
// the blobs are removed.
const char kVersion10[] = R"sql(
CREATE TABLE tenant_allowances (
  tenant          TEXT PRIMARY KEY,
  shares          INTEGER CHECK (shares BETWEEN 1 AND 1000000),
  unfinished_jobs INTEGER CHECK (unfinished_jobs >= 0),
  running_gpus    INTEGER CHECK (running_gpus >= 0),
  gpu_ms          INTEGER CHECK (gpu_ms >= 0),
  stored_bytes    INTEGER CHECK (stored_bytes >= 0)
) STRICT, WITHOUT ROWID;
CREATE TABLE principal_allowances (
  principal_id    INTEGER PRIMARY KEY,
  shares          INTEGER CHECK (shares BETWEEN 1 AND 1000000),
  unfinished_jobs INTEGER CHECK (unfinished_jobs >= 0),
  running_gpus    INTEGER CHECK (running_gpus >= 0),
  gpu_ms          INTEGER CHECK (gpu_ms >= 0),
  stored_bytes    INTEGER CHECK (stored_bytes >= 0)
) STRICT;

-- reserved_gpu_ms: the time limits of open attempts, times their GPUs.
CREATE TABLE usage_totals (
  owner_id        INTEGER NOT NULL,
  tenant          TEXT    NOT NULL,
  unfinished_jobs INTEGER NOT NULL DEFAULT 0 CHECK (unfinished_jobs >= 0),
  running_gpus    INTEGER NOT NULL DEFAULT 0 CHECK (running_gpus >= 0),
  reserved_gpu_ms INTEGER NOT NULL DEFAULT 0 CHECK (reserved_gpu_ms >= 0),
  PRIMARY KEY (owner_id, tenant)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_totals_of_tenants ON usage_totals (tenant);

-- slot_ms counts a slot of a device of any kind, gpu_ms those of GPUs alone.
CREATE TABLE usage_days (
  owner_id INTEGER NOT NULL,
  tenant   TEXT    NOT NULL,
  day      INTEGER NOT NULL,
  gpu_ms   INTEGER NOT NULL CHECK (gpu_ms >= 0),
  slot_ms  INTEGER NOT NULL CHECK (slot_ms >= 0),
  PRIMARY KEY (owner_id, tenant, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_days_of_tenants ON usage_days (tenant, day);

CREATE TABLE stored_bytes (
  principal_id INTEGER PRIMARY KEY,
  bytes        INTEGER NOT NULL CHECK (bytes >= 0)
) STRICT;

ALTER TABLE attempts ADD COLUMN gpus INTEGER NOT NULL DEFAULT 0 CHECK (gpus BETWEEN 0 AND 16);
UPDATE attempts SET gpus = (SELECT gpus FROM jobs WHERE id = job_id) WHERE outcome = 0;

INSERT INTO usage_totals
  SELECT owner_id, tenant, sum(state < 7), 0, 0 FROM jobs GROUP BY owner_id, tenant;
UPDATE usage_totals SET (running_gpus, reserved_gpu_ms) =
  (SELECT coalesce(sum(a.gpus), 0), coalesce(sum(a.gpus * j.max_runtime_ms), 0)
   FROM attempts a JOIN jobs j ON j.id = a.job_id WHERE a.outcome = 0
   AND j.owner_id = usage_totals.owner_id AND j.tenant = usage_totals.tenant);
INSERT INTO usage_days
  SELECT j.owner_id, j.tenant, a.ended_ms / 86400000,
         CAST(1000 * sum(min(max(a.gpu_seconds, 0), 1e9)) AS INTEGER),
         CAST(1000 * sum(min(max(a.wall_seconds, 0), 1e9)) AS INTEGER)
  FROM attempts a JOIN jobs j ON j.id = a.job_id WHERE a.outcome <> 0 GROUP BY 1, 2, 3;
INSERT OR IGNORE INTO blob_holders
  SELECT c.digest, j.owner_id FROM checkpoints c JOIN jobs j ON j.id = c.job_id
  WHERE j.owner_id > 0;
INSERT INTO stored_bytes
  SELECT h.principal_id, sum(b.size_bytes) FROM blob_holders h JOIN blobs b ON b.digest = h.digest
  GROUP BY h.principal_id;

CREATE TRIGGER usage_forgets_ended_jobs AFTER UPDATE OF state ON jobs
WHEN OLD.state < 7 AND NEW.state >= 7
BEGIN
  UPDATE usage_totals SET unfinished_jobs = unfinished_jobs - 1
    WHERE owner_id = NEW.owner_id AND tenant = NEW.tenant;
END;
CREATE TRIGGER usage_reserves_granted_gpus AFTER INSERT ON attempts
WHEN NEW.outcome = 0 AND NEW.gpus > 0
BEGIN
  UPDATE usage_totals SET running_gpus = running_gpus + NEW.gpus,
    reserved_gpu_ms = reserved_gpu_ms
      + NEW.gpus * (SELECT max_runtime_ms FROM jobs WHERE id = NEW.job_id)
    WHERE (owner_id, tenant) = (SELECT owner_id, tenant FROM jobs WHERE id = NEW.job_id);
END;
CREATE TRIGGER usage_charges_ended_attempts AFTER UPDATE OF outcome ON attempts
WHEN OLD.outcome = 0 AND NEW.outcome <> 0
BEGIN
  UPDATE usage_totals SET running_gpus = running_gpus - NEW.gpus,
    reserved_gpu_ms = reserved_gpu_ms
      - NEW.gpus * (SELECT max_runtime_ms FROM jobs WHERE id = NEW.job_id)
    WHERE NEW.gpus > 0
    AND (owner_id, tenant) = (SELECT owner_id, tenant FROM jobs WHERE id = NEW.job_id);
  INSERT INTO usage_days
    SELECT owner_id, tenant, NEW.ended_ms / 86400000,
      NEW.gpus * min(max(NEW.ended_ms - NEW.granted_ms, 0), max_runtime_ms),
      max(gpus, 1) * min(max(NEW.ended_ms - NEW.granted_ms, 0), max_runtime_ms)
      FROM jobs WHERE id = NEW.job_id
    ON CONFLICT DO UPDATE SET gpu_ms = gpu_ms + excluded.gpu_ms,
      slot_ms = slot_ms + excluded.slot_ms;
END;
CREATE TRIGGER usage_takes_reinstated_attempts_back AFTER UPDATE OF outcome ON attempts
WHEN OLD.outcome <> 0 AND NEW.outcome = 0
BEGIN
  UPDATE usage_totals SET running_gpus = running_gpus + NEW.gpus,
    reserved_gpu_ms = reserved_gpu_ms
      + NEW.gpus * (SELECT max_runtime_ms FROM jobs WHERE id = NEW.job_id)
    WHERE NEW.gpus > 0
    AND (owner_id, tenant) = (SELECT owner_id, tenant FROM jobs WHERE id = NEW.job_id);
  UPDATE usage_days SET
    gpu_ms = gpu_ms - NEW.gpus * min(max(OLD.ended_ms - NEW.granted_ms, 0),
                                     (SELECT max_runtime_ms FROM jobs WHERE id = NEW.job_id)),
    slot_ms = slot_ms - (SELECT max(gpus, 1) * min(max(OLD.ended_ms - NEW.granted_ms, 0),
                                                   max_runtime_ms)
                         FROM jobs WHERE id = NEW.job_id)
    WHERE day = OLD.ended_ms / 86400000
    AND (owner_id, tenant) = (SELECT owner_id, tenant FROM jobs WHERE id = NEW.job_id);
END;

CREATE TRIGGER checkpoints_belong_to_owners AFTER INSERT ON checkpoints
BEGIN
  INSERT OR IGNORE INTO blob_holders
    SELECT NEW.digest, owner_id FROM jobs WHERE id = NEW.job_id AND owner_id > 0;
END;
CREATE TRIGGER stored_bytes_of_new_holders AFTER INSERT ON blob_holders
BEGIN
  INSERT INTO stored_bytes
    VALUES (NEW.principal_id,
            coalesce((SELECT size_bytes FROM blobs WHERE digest = NEW.digest), 0))
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER stored_bytes_of_new_blobs AFTER INSERT ON blobs
BEGIN
  UPDATE stored_bytes SET bytes = bytes + NEW.size_bytes
    WHERE principal_id IN (SELECT principal_id FROM blob_holders WHERE digest = NEW.digest);
END;
CREATE TRIGGER stored_bytes_of_changed_blobs AFTER UPDATE OF size_bytes ON blobs
WHEN NEW.size_bytes <> OLD.size_bytes
BEGIN
  UPDATE stored_bytes SET bytes = bytes + NEW.size_bytes - OLD.size_bytes
    WHERE principal_id IN (SELECT principal_id FROM blob_holders WHERE digest = NEW.digest);
END;
CREATE TRIGGER stored_bytes_go_with_their_blob BEFORE DELETE ON blobs
BEGIN
  UPDATE stored_bytes SET bytes = bytes - OLD.size_bytes
    WHERE principal_id IN (SELECT principal_id FROM blob_holders WHERE digest = OLD.digest);
END;

-- The waiting jobs of each owner, as grants read them.
CREATE INDEX jobs_ready_of_owners
  ON jobs (pool, tenant, owner_id, placement, priority DESC, id) WHERE state = 3 AND ready = 1;
)sql";

}  // namespace quasi::server
