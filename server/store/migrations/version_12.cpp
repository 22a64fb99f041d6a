#include "server/store/migrations/migrations.hpp"

namespace quasi::server {

// One-time codes are narrowed to scopes, as their tokens are. A change of a priority is an event of
// type 5, which needs another rule on types, so that the table of events is written anew. Numbers
// of removed events are not given again.
const char kVersion12[] = R"sql(
ALTER TABLE join_codes ADD COLUMN scopes INTEGER NOT NULL DEFAULT 15
  CHECK (scopes BETWEEN 1 AND 15);
CREATE TRIGGER join_codes_keep_their_scopes BEFORE UPDATE OF scopes ON join_codes
WHEN NEW.scopes <> OLD.scopes
BEGIN SELECT RAISE(ABORT, 'the scopes of a code do not change'); END;

-- type 1: a change of state, numbered per job. The other types are deleted after a while.
CREATE TABLE new_events (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id      INTEGER NOT NULL REFERENCES jobs (id),
  job_seq     INTEGER NOT NULL,
  time_ms     INTEGER NOT NULL,
  type        INTEGER NOT NULL CHECK (type BETWEEN 1 AND 5),
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
  old_priority INTEGER, new_priority INTEGER,
  CHECK ((type = 1) = (job_seq > 0)),
  CHECK ((type = 5) = (new_priority IS NOT NULL) AND (type = 5) = (old_priority IS NOT NULL))
) STRICT;
INSERT INTO new_events SELECT *, NULL, NULL FROM events ORDER BY seq;
DELETE FROM sqlite_sequence WHERE name = 'new_events';
INSERT INTO sqlite_sequence SELECT 'new_events', seq FROM sqlite_sequence WHERE name = 'events';
DROP TABLE events;
ALTER TABLE new_events RENAME TO events;

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
)sql";

}  // namespace quasi::server
