#include "server/store/migrations/migrations.hpp"

namespace quasi::server {

// `checkpoint_ms` of a job is the interval of checkpoints that its submitter states.
// `reserved_bytes` of an attempt is the memory that it got on each of its GPUs. `estimate_ratios`
// keeps measured over stated values of the newest jobs (server/queue/estimates).
//
// Orders of operators. A row of `service_orders` keeps a worker out of service, or one device of it
// if `device_id` is not empty. `preempted` of an attempt says who preempted it and why.
const char kVersion15[] = R"sql(
CREATE TABLE service_orders (
  worker_id TEXT    NOT NULL,
  device_id TEXT    NOT NULL,
  evicts    INTEGER NOT NULL CHECK (evicts IN (0, 1)),
  until_ms  INTEGER NOT NULL,
  since_ms  INTEGER NOT NULL,
  by_name   TEXT    NOT NULL,
  reason    TEXT    NOT NULL,
  PRIMARY KEY (worker_id, device_id)
) STRICT, WITHOUT ROWID;
ALTER TABLE jobs ADD COLUMN checkpoint_ms INTEGER NOT NULL DEFAULT 0 CHECK (checkpoint_ms >= 0);
ALTER TABLE attempts ADD COLUMN reserved_bytes INTEGER NOT NULL DEFAULT 0;
CREATE TABLE estimate_ratios (
  id    INTEGER PRIMARY KEY AUTOINCREMENT,
  kind  TEXT    NOT NULL,
  pool  TEXT    NOT NULL,
  ratio REAL    NOT NULL CHECK (ratio > 0)
) STRICT;
CREATE INDEX estimate_ratios_of_kinds ON estimate_ratios (kind, pool, id);
ALTER TABLE attempts ADD COLUMN preempted TEXT NOT NULL DEFAULT '';
CREATE TRIGGER attempts_preempted_while_open BEFORE UPDATE OF preempted ON attempts
WHEN NEW.preempted <> OLD.preempted AND (OLD.outcome <> 0 OR OLD.preempted <> '')
BEGIN SELECT RAISE(ABORT, 'an attempt is preempted once and while it is open'); END;
)sql";

}  // namespace quasi::server
