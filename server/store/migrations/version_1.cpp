#include "server/store/migrations/migrations.hpp"

namespace quasi::server {

// Times are milliseconds since 1970; states, reasons and outcomes are numbers of quasi.v1. The
// triggers and CHECKs repeat the rules of server/queue, so that the database refuses to commit the
// result of a bug there.
const char kVersion1[] = R"sql(
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE counters (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counters VALUES ('fence', 0);

CREATE TRIGGER counters_only_rise BEFORE UPDATE ON counters WHEN NEW.value < OLD.value
BEGIN SELECT RAISE(ABORT, 'I4: a counter may not be lowered'); END;

CREATE TABLE jobs (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  uid             TEXT    NOT NULL UNIQUE,
  name            TEXT    NOT NULL,
  kind            TEXT    NOT NULL,
  state           INTEGER NOT NULL CHECK (state BETWEEN 1 AND 9),
  reason          INTEGER NOT NULL DEFAULT 0,
  message         TEXT    NOT NULL DEFAULT '',
  exit_status     INTEGER,
  signal          INTEGER,
  priority        INTEGER NOT NULL CHECK (priority BETWEEN -100 AND 100),
  pool            TEXT    NOT NULL,
  placement       TEXT    NOT NULL,
  device          INTEGER NOT NULL CHECK (device BETWEEN 1 AND 3),
  gpus            INTEGER NOT NULL CHECK (gpus BETWEEN 0 AND 16),
  memory_bytes    INTEGER NOT NULL CHECK (memory_bytes >= 0),
  max_runtime_ms  INTEGER NOT NULL CHECK (max_runtime_ms > 0),
  not_before_ms   INTEGER NOT NULL DEFAULT 0,
  ready           INTEGER NOT NULL CHECK (ready IN (0, 1)),
  attempts        INTEGER NOT NULL DEFAULT 0,
  max_attempts    INTEGER NOT NULL CHECK (max_attempts BETWEEN 1 AND 10),
  grants          INTEGER NOT NULL DEFAULT 0,
  crashes         INTEGER NOT NULL DEFAULT 0,
  gpu_ooms        INTEGER NOT NULL DEFAULT 0,
  host_ooms       INTEGER NOT NULL DEFAULT 0,
  resume          INTEGER NOT NULL CHECK (resume IN (0, 1)),
  checkpoints_kept INTEGER NOT NULL CHECK (checkpoints_kept BETWEEN 1 AND 16),
  fence           INTEGER NOT NULL DEFAULT 0,
  open_attempt    INTEGER REFERENCES attempts (id),
  avoid_device    TEXT    NOT NULL DEFAULT '',
  revision        INTEGER NOT NULL,
  job_seq         INTEGER NOT NULL,
  created_ms      INTEGER NOT NULL,
  started_ms      INTEGER NOT NULL DEFAULT 0,
  ended_ms        INTEGER NOT NULL DEFAULT 0,
  cancel_requested_ms INTEGER NOT NULL DEFAULT 0,
  spec            BLOB    NOT NULL,
  summary         TEXT    NOT NULL DEFAULT '',
  CONSTRAINT open_attempt_and_state_go_together
    CHECK ((open_attempt IS NOT NULL) = (state IN (4, 5, 6))),
  CONSTRAINT attempts_within_limits
    CHECK (attempts BETWEEN 0 AND max_attempts AND attempts <= grants
           AND grants <= max_attempts + 20),
  CONSTRAINT a_final_job_has_ended CHECK ((ended_ms > 0) = (state >= 7))
) STRICT;

CREATE INDEX jobs_ready ON jobs (pool, placement, priority DESC, id) WHERE state = 3 AND ready = 1;
CREATE INDEX jobs_delayed ON jobs (not_before_ms) WHERE state = 3 AND ready = 0;
CREATE INDEX jobs_live ON jobs (state, pool) WHERE state < 7;
CREATE INDEX jobs_by_state ON jobs (state, id);

CREATE TRIGGER jobs_final_is_final BEFORE UPDATE OF state ON jobs
WHEN OLD.state >= 7 AND NEW.state <> OLD.state
BEGIN SELECT RAISE(ABORT, 'I3: a final state is never left'); END;

CREATE TRIGGER jobs_fence_only_rises BEFORE UPDATE OF fence ON jobs WHEN NEW.fence < OLD.fence
BEGIN SELECT RAISE(ABORT, 'I4: a fence may not be lowered'); END;

CREATE TRIGGER jobs_change_is_numbered BEFORE UPDATE OF state ON jobs
WHEN NEW.state <> OLD.state AND NEW.job_seq <> OLD.job_seq + 1
BEGIN SELECT RAISE(ABORT, 'I8: a change of state takes the next job_seq'); END;

CREATE TRIGGER jobs_spec_stays BEFORE UPDATE OF spec, uid, kind, created_ms ON jobs
WHEN NEW.spec <> OLD.spec OR NEW.uid <> OLD.uid OR NEW.kind <> OLD.kind
     OR NEW.created_ms <> OLD.created_ms
BEGIN SELECT RAISE(ABORT, 'I1: what was submitted does not change'); END;

CREATE TRIGGER jobs_stay BEFORE DELETE ON jobs
BEGIN SELECT RAISE(ABORT, 'I1: a job is not deleted'); END;

CREATE TABLE job_labels (
  job_id INTEGER NOT NULL REFERENCES jobs (id),
  key    TEXT    NOT NULL,
  value  TEXT    NOT NULL,
  PRIMARY KEY (job_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_labels_by_value ON job_labels (key, value, job_id);

CREATE TABLE job_inputs (
  job_id     INTEGER NOT NULL REFERENCES jobs (id),
  slot       TEXT    NOT NULL,
  digest     TEXT    NOT NULL,
  size_bytes INTEGER NOT NULL,
  PRIMARY KEY (job_id, slot)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_inputs_by_digest ON job_inputs (digest);

CREATE TABLE attempts (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  uid          TEXT    NOT NULL UNIQUE,
  job_id       INTEGER NOT NULL REFERENCES jobs (id),
  number       INTEGER NOT NULL,
  fence        INTEGER NOT NULL UNIQUE,
  worker_id    TEXT    NOT NULL,
  incarnation  TEXT    NOT NULL,
  device_ids   TEXT    NOT NULL,
  acquire_id   TEXT    NOT NULL,
  granted_ms   INTEGER NOT NULL,
  started_ms   INTEGER NOT NULL DEFAULT 0,
  ended_ms     INTEGER NOT NULL DEFAULT 0,
  outcome      INTEGER NOT NULL DEFAULT 0 CHECK (outcome BETWEEN 0 AND 5),
  reason       INTEGER NOT NULL DEFAULT 0,
  message      TEXT    NOT NULL DEFAULT '',
  exit_status  INTEGER,
  signal       INTEGER,
  release_message TEXT NOT NULL DEFAULT '',
  wall_seconds REAL    NOT NULL DEFAULT 0,
  gpu_seconds  REAL    NOT NULL DEFAULT 0,
  peak_gpu_bytes INTEGER NOT NULL DEFAULT 0,
  peak_ram_bytes INTEGER NOT NULL DEFAULT 0,
  energy_joules REAL   NOT NULL DEFAULT 0,
  log_bytes    INTEGER NOT NULL DEFAULT 0,
  log_full     INTEGER NOT NULL DEFAULT 0,
  counted      INTEGER NOT NULL DEFAULT 1,
  new_checkpoint INTEGER NOT NULL DEFAULT 0,
  report_digest TEXT   NOT NULL DEFAULT '',
  end_state    INTEGER NOT NULL DEFAULT 3,
  CHECK ((outcome = 0) = (ended_ms = 0)),
  UNIQUE (job_id, number)
) STRICT;
CREATE UNIQUE INDEX attempts_one_open ON attempts (job_id) WHERE outcome = 0;
CREATE INDEX attempts_open_of_worker ON attempts (worker_id) WHERE outcome = 0;
CREATE INDEX attempts_by_acquire ON attempts (acquire_id);

CREATE TRIGGER attempts_fence_stays BEFORE UPDATE OF fence, job_id, uid ON attempts
WHEN NEW.fence <> OLD.fence OR NEW.job_id <> OLD.job_id OR NEW.uid <> OLD.uid
BEGIN SELECT RAISE(ABORT, 'I4: the fence of an attempt does not change'); END;

CREATE TRIGGER attempts_fence_is_newest BEFORE INSERT ON attempts
WHEN NEW.fence <> (SELECT value FROM counters WHERE name = 'fence')
BEGIN SELECT RAISE(ABORT, 'I4: a new attempt takes the newest fence'); END;

CREATE TRIGGER attempts_log_only_grows BEFORE UPDATE OF log_bytes ON attempts
WHEN NEW.log_bytes < OLD.log_bytes
BEGIN SELECT RAISE(ABORT, 'a log may not become shorter'); END;

CREATE TRIGGER attempts_stay BEFORE DELETE ON attempts
BEGIN SELECT RAISE(ABORT, 'I13: an attempt is not deleted'); END;

CREATE TABLE checkpoints (
  job_id     INTEGER NOT NULL REFERENCES jobs (id),
  sequence   INTEGER NOT NULL,
  step       INTEGER NOT NULL,
  digest     TEXT    NOT NULL,
  size_bytes INTEGER NOT NULL,
  fence      INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (job_id, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX checkpoints_by_digest ON checkpoints (digest);

CREATE TRIGGER checkpoints_fence_is_current BEFORE INSERT ON checkpoints
WHEN NEW.fence <> (SELECT fence FROM jobs WHERE id = NEW.job_id)
     OR (SELECT state FROM jobs WHERE id = NEW.job_id) NOT IN (4, 5, 6)
BEGIN SELECT RAISE(ABORT, 'I5: a checkpoint is written by the holder of the job'); END;

CREATE TABLE artifacts (
  job_id     INTEGER NOT NULL REFERENCES jobs (id),
  name       TEXT    NOT NULL,
  digest     TEXT    NOT NULL,
  size_bytes INTEGER NOT NULL,
  media_type TEXT    NOT NULL,
  PRIMARY KEY (job_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX artifacts_by_digest ON artifacts (digest);

CREATE TRIGGER artifacts_of_running_only BEFORE INSERT ON artifacts
WHEN (SELECT state FROM jobs WHERE id = NEW.job_id) <> 5
BEGIN SELECT RAISE(ABORT, 'I2: artefacts come with the success of a running job'); END;
CREATE TRIGGER artifacts_do_not_change BEFORE UPDATE ON artifacts
BEGIN SELECT RAISE(ABORT, 'I2: an artefact does not change'); END;
CREATE TRIGGER artifacts_do_not_go BEFORE DELETE ON artifacts
BEGIN SELECT RAISE(ABORT, 'I2: an artefact is not removed'); END;

CREATE TABLE progress (
  job_id  INTEGER PRIMARY KEY REFERENCES jobs (id),
  body    BLOB    NOT NULL,
  time_ms INTEGER NOT NULL
) STRICT;

-- 1: present. 2: being deleted. 3: corrupt, i.e. the bytes do not match the digest; never served.
CREATE TABLE blobs (
  digest     TEXT PRIMARY KEY,
  size_bytes INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  state      INTEGER NOT NULL DEFAULT 1 CHECK (state IN (1, 2, 3))
) STRICT, WITHOUT ROWID;
CREATE INDEX blobs_by_age ON blobs (created_ms);

CREATE TRIGGER blobs_referenced_stay BEFORE UPDATE OF state ON blobs
WHEN NEW.state = 2 AND OLD.state <> 2 AND (
     EXISTS (SELECT 1 FROM job_inputs WHERE digest = NEW.digest)
  OR EXISTS (SELECT 1 FROM artifacts WHERE digest = NEW.digest)
  OR EXISTS (SELECT 1 FROM checkpoints WHERE digest = NEW.digest))
BEGIN SELECT RAISE(ABORT, 'I11: a referenced blob is not deleted'); END;
CREATE TRIGGER blobs_deleted_in_two_steps BEFORE DELETE ON blobs WHEN OLD.state <> 2
BEGIN SELECT RAISE(ABORT, 'I11: a blob is marked before its row goes'); END;

CREATE TABLE uploads (
  upload_id       TEXT PRIMARY KEY,
  digest          TEXT    NOT NULL,
  size_bytes      INTEGER NOT NULL,
  committed_bytes INTEGER NOT NULL,
  touched_ms      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE requests (
  request_id  TEXT PRIMARY KEY,
  method      TEXT    NOT NULL,
  body_sha256 TEXT    NOT NULL,
  response    TEXT    NOT NULL,
  expires_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX requests_by_age ON requests (expires_ms);

CREATE TRIGGER requests_stay_as_they_are BEFORE UPDATE ON requests
BEGIN SELECT RAISE(ABORT, 'I7: a stored answer does not change'); END;

-- type 1: a change of state, numbered per job. The other types are deleted after a while.
CREATE TABLE events (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id      INTEGER NOT NULL REFERENCES jobs (id),
  job_seq     INTEGER NOT NULL,
  time_ms     INTEGER NOT NULL,
  type        INTEGER NOT NULL CHECK (type BETWEEN 1 AND 4),
  from_state  INTEGER,
  to_state    INTEGER NOT NULL,
  reason      INTEGER NOT NULL DEFAULT 0,
  failure     TEXT    NOT NULL DEFAULT '',
  exit_status INTEGER,
  signal      INTEGER,
  attempt     INTEGER NOT NULL DEFAULT 0,
  attempt_uid TEXT    NOT NULL DEFAULT '',
  fence       INTEGER NOT NULL DEFAULT 0,
  worker_id   TEXT    NOT NULL DEFAULT '',
  message     TEXT    NOT NULL DEFAULT '',
  reinstated  INTEGER NOT NULL DEFAULT 0,
  not_before_ms INTEGER NOT NULL DEFAULT 0,
  progress    BLOB,
  log_bytes   INTEGER NOT NULL DEFAULT 0,
  cp_sequence INTEGER, cp_step INTEGER, cp_digest TEXT, cp_size INTEGER,
  CHECK ((type = 1) = (job_seq > 0))
) STRICT;
CREATE UNIQUE INDEX events_of_job ON events (job_id, job_seq) WHERE job_seq > 0;
CREATE INDEX events_passing ON events (time_ms) WHERE type <> 1;

CREATE TRIGGER events_follow_the_job BEFORE INSERT ON events
WHEN NEW.type = 1 AND NOT EXISTS (SELECT 1 FROM jobs WHERE id = NEW.job_id
                                  AND job_seq = NEW.job_seq AND state = NEW.to_state)
BEGIN SELECT RAISE(ABORT, 'I8: an event says what its job is'); END;
CREATE TRIGGER events_do_not_change BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'I8: an event does not change'); END;
CREATE TRIGGER events_of_state_stay BEFORE DELETE ON events WHEN OLD.type = 1
BEGIN SELECT RAISE(ABORT, 'I8: a change of state is not forgotten'); END;

CREATE TABLE workers (
  id           TEXT PRIMARY KEY,
  incarnation  TEXT    NOT NULL,
  name         TEXT    NOT NULL,
  version      TEXT    NOT NULL,
  pool         TEXT    NOT NULL,
  kinds        TEXT    NOT NULL,
  last_seen_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE devices (
  worker_id    TEXT    NOT NULL REFERENCES workers (id),
  id           TEXT    NOT NULL,
  backend      INTEGER NOT NULL,
  model        TEXT    NOT NULL,
  memory_bytes INTEGER NOT NULL,
  slots        INTEGER NOT NULL,
  PRIMARY KEY (worker_id, id)
) STRICT, WITHOUT ROWID;
)sql";

}  // namespace quasi::server
