#include "server/store/migrations/migrations.hpp"

namespace quasi::server {

// Stop rules of sweeps: a row for each condition on a figure of the results of their jobs. `met`
// counts the jobs that met it, and `lacking` those whose results have no such figure.
const char kVersion16[] = R"sql(
ALTER TABLE job_sets ADD COLUMN stop_reason TEXT NOT NULL DEFAULT '';
CREATE TABLE stop_rules (
  set_id     INTEGER NOT NULL REFERENCES job_sets (id),
  position   INTEGER NOT NULL CHECK (position BETWEEN 0 AND 7),
  figure     TEXT    NOT NULL,
  comparison INTEGER NOT NULL CHECK (comparison BETWEEN 1 AND 4),
  value      REAL    NOT NULL,
  jobs       INTEGER NOT NULL CHECK (jobs > 0),
  met        INTEGER NOT NULL DEFAULT 0 CHECK (met BETWEEN 0 AND jobs),
  lacking    INTEGER NOT NULL DEFAULT 0 CHECK (lacking >= 0),
  PRIMARY KEY (set_id, position)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER stop_rules_stay BEFORE DELETE ON stop_rules
BEGIN SELECT RAISE(ABORT, 'I1: what was submitted does not change'); END;
CREATE TRIGGER stop_rules_do_not_change BEFORE UPDATE ON stop_rules
WHEN NEW.figure <> OLD.figure OR NEW.comparison <> OLD.comparison OR NEW.value <> OLD.value
  OR NEW.jobs <> OLD.jobs OR NEW.met < OLD.met OR NEW.lacking < OLD.lacking
BEGIN SELECT RAISE(ABORT, 'I1: what was submitted does not change'); END;
)sql";

}  // namespace quasi::server
