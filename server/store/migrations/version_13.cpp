#include "server/store/migrations/migrations.hpp"

namespace quasi::server {

// The result cache. A job has the digest of what decides its result, its policy (numbers of
// quasi.v1.CachePolicy), and the job whose result it took, if it took one. `share` is
// "tenant NAME" or "owner ID". Jobs of earlier versions have no action, so nobody takes theirs.
const char kVersion13[] = R"sql(
ALTER TABLE jobs ADD COLUMN action TEXT NOT NULL DEFAULT '' CHECK (length(action) IN (0, 64));
ALTER TABLE jobs ADD COLUMN cache INTEGER NOT NULL DEFAULT 3 CHECK (cache BETWEEN 1 AND 3);
ALTER TABLE jobs ADD COLUMN taken_from INTEGER REFERENCES jobs (id);
CREATE INDEX jobs_that_took_results ON jobs (action) WHERE taken_from IS NOT NULL;
CREATE INDEX jobs_of_actions ON jobs (action, state) WHERE action <> '' AND state < 7;

CREATE TABLE results (
  share  TEXT    NOT NULL,
  action TEXT    NOT NULL CHECK (length(action) = 64),
  job_id INTEGER NOT NULL REFERENCES jobs (id),
  PRIMARY KEY (share, action)
) STRICT, WITHOUT ROWID;
CREATE INDEX results_of_jobs ON results (job_id);

CREATE TRIGGER results_are_of_successes BEFORE INSERT ON results
WHEN NOT EXISTS (SELECT 1 FROM jobs WHERE id = NEW.job_id AND action = NEW.action AND state = 7
                 AND deleted_ms = 0 AND NEW.share IN ('tenant ' || tenant, 'owner ' || owner_id))
BEGIN SELECT RAISE(ABORT, 'I2: a result is that of a job that succeeded'); END;
CREATE TRIGGER actions_do_not_change BEFORE UPDATE OF action, cache, taken_from ON jobs
WHEN NEW.action <> OLD.action OR NEW.cache <> OLD.cache OR (NEW.taken_from IS NOT OLD.taken_from
  AND (OLD.taken_from IS NOT NULL OR OLD.state NOT IN (1, 3)))
BEGIN SELECT RAISE(ABORT, 'I1: what was submitted does not change'); END;

DROP TRIGGER artifacts_of_running_only;
CREATE TRIGGER artifacts_of_running_only BEFORE INSERT ON artifacts
WHEN NOT EXISTS (
  SELECT 1 FROM jobs WHERE id = NEW.job_id AND (state = 5 OR (state = 7 AND EXISTS (
    SELECT 1 FROM artifacts a JOIN jobs s ON s.id = a.job_id
    WHERE a.job_id = jobs.taken_from AND a.name = NEW.name AND a.digest = NEW.digest
    AND a.size_bytes = NEW.size_bytes AND s.action = jobs.action AND s.tenant = jobs.tenant))))
BEGIN SELECT RAISE(ABORT, 'I2: artefacts come with a success or from an equal job'); END;
)sql";

}  // namespace quasi::server
