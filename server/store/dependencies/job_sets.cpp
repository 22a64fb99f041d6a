// The table of the sets of jobs (docs/reference/sweeps.md).

#include "server/store/query.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {
namespace {

const std::string kSetColumns =
    "j.id, j.uid, j.name, j.owner_id, j.tenant, j.visibility, j.created_ms, j.max_concurrent, "
    "j.stop_after_failures, j.stopped_ms";

JobSetRow read_set(const Statement& row) {
  JobSetRow set;
  set.id = row.integer(0);
  set.uid = row.text(1);
  set.name = row.text(2);
  set.owner_id = row.integer(3);
  set.tenant = row.text(4);
  set.visibility = static_cast<Visibility>(row.small(5));
  set.created_ms = row.integer(6);
  set.max_concurrent = row.integer(7);
  set.stop_after_failures = row.integer(8);
  set.stopped_ms = row.integer(9);
  return set;
}

std::int64_t first_column(const Statement& row) { return row.integer(0); }

}  // namespace

RowId SqliteStore::insert_set(const JobSetRow& set) {
  sql("INSERT INTO job_sets (uid, name, owner_id, tenant, visibility, created_ms, max_concurrent, "
      "stop_after_failures, axes) VALUES (?,?,?,?,?,?,?,?,?)")
      .run(set.uid, set.name, set.owner_id, set.tenant, set.visibility, set.created_ms,
           set.max_concurrent, set.stop_after_failures, Statement::Blob{set.axes});
  const RowId id = database_.last_insert_id();
  insert_stop_rules(id, set.stop_rules);
  return id;
}

std::optional<JobSetRow> SqliteStore::job_set(RowId id) {
  static const std::string kQuery = "SELECT " + kSetColumns + " FROM job_sets j WHERE j.id=?";
  return one<JobSetRow>(sql(kQuery).bind(id), read_set);
}

std::optional<JobSetRow> SqliteStore::find_set(const Scope& scope, std::string_view uid) {
  static const std::string kQuery =
      "SELECT " + kSetColumns + " FROM job_sets j WHERE j.uid=?4 AND " + std::string(kJobInScope);
  return one<JobSetRow>(
      sql(kQuery).bind(scope.is_everything, scope.principal_id, scope.tenant, uid), read_set);
}

void SqliteStore::stop_set(RowId set, const std::string& why, std::int64_t now_ms) {
  sql("UPDATE job_sets SET stopped_ms=?, stop_reason=? WHERE id=?").run(now_ms, why, set);
}

std::int64_t SqliteStore::running_of_set(RowId set) {
  return one<std::int64_t>(
             sql("SELECT (SELECT count(*) FROM jobs WHERE set_id=?1 AND state IN (3,4,5,6)) + "
                 "(SELECT count(*) FROM jobs INDEXED BY jobs_of_sets_with_equals WHERE set_id=?1 "
                 "AND state=1 AND unmet=0 AND set_waits=0)")
                 .bind(set),
             first_column)
      .value_or(0);
}

std::int64_t SqliteStore::failures_of_set(RowId set, std::int64_t limit) {
  // Reason 10: a job that it waited for did not succeed.
  return one<std::int64_t>(sql("SELECT count(*) FROM (SELECT 1 FROM jobs WHERE set_id=? AND "
                               "state=8 AND reason<>10 LIMIT ?)")
                               .bind(set, limit),
                           first_column)
      .value_or(0);
}

std::optional<JobRow> SqliteStore::next_of_set(RowId set) {
  static const std::string kQuery =
      "SELECT " + std::string(kJobColumns) +
      " FROM jobs j INDEXED BY jobs_of_sets_that_wait WHERE j.set_id=? AND j.state=1 AND j.unmet=0 "
      "AND j.set_waits=1 ORDER BY j.priority DESC, j.id LIMIT 1";
  return one<JobRow>(sql(kQuery).bind(set), read_job);
}

std::vector<RowId> SqliteStore::unfinished_of_set(RowId set) {
  return all<RowId>(
      sql("SELECT id FROM jobs WHERE set_id=? AND state<7 ORDER BY id DESC").bind(set),
      first_column);
}

}  // namespace quasi::server
