#include "server/store/migrations/migrations.hpp"

namespace quasi::server {

// Jobs that wait for others, and sets of jobs. A job waits for jobs of lower numbers, so that there
// are no cycles. `unmet` counts the jobs for which it still waits. The inputs that other jobs make
// are among job_inputs once they are made. The action of a job is known with its last input. A job
// of a set whose jobs run as many at a time as may has `set_waits`.
const char kVersion14[] = R"sql(
ALTER TABLE jobs ADD COLUMN unmet INTEGER NOT NULL DEFAULT 0
  CHECK (unmet >= 0 AND (unmet = 0 OR state IN (1, 2, 8, 9)));

CREATE TABLE job_dependencies (
  job_id    INTEGER NOT NULL REFERENCES jobs (id),
  on_job    INTEGER NOT NULL REFERENCES jobs (id) CHECK (on_job < job_id),
  condition INTEGER NOT NULL CHECK (condition IN (1, 2)),
  PRIMARY KEY (job_id, on_job)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_dependents ON job_dependencies (on_job, job_id);

CREATE TABLE artifact_inputs (
  job_id   INTEGER NOT NULL REFERENCES jobs (id),
  slot     TEXT    NOT NULL,
  on_job   INTEGER NOT NULL,
  artifact TEXT    NOT NULL,
  PRIMARY KEY (job_id, slot),
  FOREIGN KEY (job_id, on_job) REFERENCES job_dependencies (job_id, on_job)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER job_dependencies_stay BEFORE DELETE ON job_dependencies
WHEN (SELECT deleted_ms FROM jobs WHERE id = OLD.job_id) = 0
BEGIN SELECT RAISE(ABORT, 'I1: a dependency goes with its job'); END;
CREATE TRIGGER artifact_inputs_stay BEFORE DELETE ON artifact_inputs
WHEN (SELECT deleted_ms FROM jobs WHERE id = OLD.job_id) = 0
BEGIN SELECT RAISE(ABORT, 'I1: an input goes with its job'); END;

CREATE TABLE job_sets (
  id                  INTEGER PRIMARY KEY AUTOINCREMENT,
  uid                 TEXT    NOT NULL UNIQUE,
  name                TEXT    NOT NULL,
  owner_id            INTEGER NOT NULL,
  tenant              TEXT    NOT NULL,
  visibility          INTEGER NOT NULL CHECK (visibility IN (1, 2)),
  created_ms          INTEGER NOT NULL,
  max_concurrent      INTEGER NOT NULL CHECK (max_concurrent >= 0),
  stop_after_failures INTEGER NOT NULL CHECK (stop_after_failures >= 0),
  stopped_ms          INTEGER NOT NULL DEFAULT 0 CHECK (stopped_ms >= 0),
  axes                BLOB    NOT NULL
) STRICT;
CREATE INDEX job_sets_by_owner ON job_sets (owner_id, id);
CREATE TRIGGER job_sets_stay BEFORE DELETE ON job_sets
BEGIN SELECT RAISE(ABORT, 'I1: a set of jobs is not deleted'); END;
CREATE TRIGGER job_sets_do_not_change BEFORE UPDATE ON job_sets
WHEN NEW.uid <> OLD.uid OR NEW.name <> OLD.name OR NEW.owner_id <> OLD.owner_id
  OR NEW.tenant <> OLD.tenant OR NEW.visibility <> OLD.visibility OR NEW.axes <> OLD.axes
  OR NEW.max_concurrent <> OLD.max_concurrent
  OR NEW.stop_after_failures <> OLD.stop_after_failures OR OLD.stopped_ms > 0
BEGIN SELECT RAISE(ABORT, 'I1: what was submitted does not change'); END;

ALTER TABLE jobs ADD COLUMN set_id INTEGER REFERENCES job_sets (id);
ALTER TABLE jobs ADD COLUMN set_waits INTEGER NOT NULL DEFAULT 0
  CHECK (set_waits IN (0, 1) AND (set_waits = 0 OR (set_id IS NOT NULL AND state IN (1, 2, 8, 9))));
CREATE INDEX jobs_of_sets ON jobs (set_id) WHERE set_id IS NOT NULL;
CREATE INDEX jobs_of_sets_by_state ON jobs (set_id, state, deleted_ms) WHERE set_id IS NOT NULL;
CREATE INDEX jobs_of_sets_with_equals ON jobs (set_id)
  WHERE set_id IS NOT NULL AND state = 1 AND unmet = 0 AND set_waits = 0;
CREATE INDEX jobs_of_sets_that_wait ON jobs (set_id, priority DESC, id)
  WHERE state = 1 AND unmet = 0 AND set_waits = 1;
CREATE TRIGGER jobs_stay_in_their_sets BEFORE UPDATE OF set_id ON jobs
WHEN NEW.set_id IS NOT OLD.set_id
BEGIN SELECT RAISE(ABORT, 'I1: what was submitted does not change'); END;

DROP TRIGGER actions_do_not_change;
CREATE TRIGGER actions_do_not_change BEFORE UPDATE OF action, cache, taken_from ON jobs
WHEN (NEW.action <> OLD.action AND (OLD.action <> '' OR OLD.unmet = 0))
  OR NEW.cache <> OLD.cache OR (NEW.taken_from IS NOT OLD.taken_from
  AND (OLD.taken_from IS NOT NULL OR OLD.state NOT IN (1, 3)))
BEGIN SELECT RAISE(ABORT, 'I1: what was submitted does not change'); END;
)sql";

}  // namespace quasi::server
