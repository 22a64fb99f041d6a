#include "server/store/figures/figure_store.hpp"

#include "server/store/query.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {

FigureStore::FigureStore(const std::string& path)
    : database_(path, Database::Mode::kReader), statements_(database_) {}

std::vector<UnfinishedJobs> FigureStore::unfinished() {
  // The lowest id is that of the oldest job, so the pass reads the index alone.
  return all<UnfinishedJobs>(
      statements_.get("SELECT g.state, g.pool, g.n, (SELECT created_ms FROM jobs WHERE id=g.first) "
                      "FROM (SELECT state, pool, count(*) AS n, min(id) AS first FROM jobs "
                      "INDEXED BY jobs_live WHERE state<7 GROUP BY state, pool) g"),
      [](const Statement& row) {
        return UnfinishedJobs{.state = static_cast<JobState>(row.small(0)),
                              .pool = row.text(1),
                              .jobs = row.integer(2),
                              .oldest_created_ms = row.integer(3)};
      });
}

std::vector<UnfinishedJobs> FigureStore::unfinished(const Scope& scope) {
  return all<UnfinishedJobs>(
      statements_
          .get("SELECT j.state, j.pool, count(*), min(j.created_ms) FROM jobs j WHERE j.state<7 "
               "AND " +
               std::string(kJobInScope) + " GROUP BY j.state, j.pool")
          .bind(scope.is_everything, scope.principal_id, scope.tenant),
      [](const Statement& row) {
        return UnfinishedJobs{.state = static_cast<JobState>(row.small(0)),
                              .pool = row.text(1),
                              .jobs = row.integer(2),
                              .oldest_created_ms = row.integer(3)};
      });
}

std::vector<EventRow> FigureStore::state_changes_of(RowId job, std::int32_t limit) {
  return all<EventRow>(
      statements_
          .get("SELECT " + std::string(kEventColumns) +
               " FROM events e WHERE e.job_id=? AND e.job_seq>0 ORDER BY e.job_seq DESC LIMIT ?")
          .bind(job, limit),
      read_event);
}

std::int64_t FigureStore::newest_event() {
  return one<std::int64_t>(statements_.get("SELECT coalesce(max(seq), 0) FROM events"),
                           [](const Statement& row) { return row.integer(0); })
      .value_or(0);
}

std::vector<StateChange> FigureStore::changes_after(std::int64_t seq, std::int32_t limit) {
  return all<StateChange>(
      statements_
          .get("SELECT e.seq, e.from_state, e.to_state, e.reason, e.time_ms, e.attempt, "
               "e.reinstated, j.kind, j.created_ms, j.started_ms, coalesce(a.outcome, 0), "
               "EXISTS (SELECT 1 FROM events p WHERE p.job_id=e.job_id AND p.job_seq=e.job_seq-1 "
               "AND p.job_seq>0 AND p.reinstated=1 AND p.time_ms=e.time_ms), "
               "j.cancel_requested_ms "
               "FROM events e JOIN jobs j ON j.id=e.job_id "
               "LEFT JOIN attempts a ON a.uid=e.attempt_uid "
               "WHERE e.seq>? AND e.type=1 ORDER BY e.seq LIMIT ?")
          .bind(seq, limit),
      [](const Statement& row) {
        StateChange change;
        change.seq = row.integer(0);
        if (!row.is_null(1)) change.from = static_cast<JobState>(row.small(1));
        change.to = static_cast<JobState>(row.small(2));
        change.reason = static_cast<FailureReason>(row.small(3));
        change.time_ms = row.integer(4);
        change.attempt = row.small(5);
        change.reinstated = row.integer(6) != 0;
        change.kind = row.text(7);
        change.created_ms = row.integer(8);
        change.started_ms = row.integer(9);
        change.outcome = static_cast<AttemptOutcome>(row.small(10));
        change.follows_reinstatement = row.integer(11) != 0;
        change.cancel_requested_ms = row.integer(12);
        return change;
      });
}

StoredFiles FigureStore::stored_files() {
  return one<StoredFiles>(
             statements_.get("SELECT count(*), coalesce(sum(size_bytes), 0) FROM blobs WHERE "
                             "state=1"),
             [](const Statement& row) {
               return StoredFiles{.files = row.integer(0), .bytes = row.integer(1)};
             })
      .value_or(StoredFiles{});
}

}  // namespace quasi::server
