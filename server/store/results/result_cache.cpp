// The tables of the result cache (docs/reference/cache.md).

#include "server/store/query.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {

std::optional<RowId> SqliteStore::find_result(const SharedAction& equals) {
  return one<RowId>(sql("SELECT job_id FROM results r WHERE share=? AND action=? AND NOT EXISTS "
                        "(SELECT 1 FROM artifacts a LEFT JOIN blobs b ON b.digest=a.digest "
                        "WHERE a.job_id=r.job_id AND b.state IS NOT 1)")
                        .bind(equals.share, equals.action),
                    [](const Statement& row) { return row.integer(0); });
}

void SqliteStore::keep_result(const SharedAction& equals, RowId job) {
  sql("INSERT OR REPLACE INTO results VALUES (?,?,?)").run(equals.share, equals.action, job);
}

void SqliteStore::set_source(RowId job, RowId source) {
  sql("UPDATE jobs SET taken_from=? WHERE id=?").run(source, job);
}

void SqliteStore::take_result(RowId job, RowId source) {
  sql("INSERT INTO artifacts SELECT ?, name, digest, size_bytes, media_type FROM artifacts "
      "WHERE job_id=?")
      .run(job, source);
  sql("UPDATE jobs SET summary=(SELECT summary FROM jobs WHERE id=?) WHERE id=?").run(source, job);
}

namespace {

/// Selects unfinished jobs of a shared action, by the index of actions and states. The index asks
/// for `state<7`, which SQLite takes as the range to read, whatever else is said of the state. A
/// range with a lower end, or an equality that is called unlikely, wins over it.
std::string equals_that(const char* condition) {
  return "SELECT " + std::string(kJobColumns) +
         " FROM jobs j INDEXED BY jobs_of_actions WHERE j.action=?1 AND j.action<>'' AND "
         "j.state<7 AND ?2 IN ('tenant ' || j.tenant, 'owner ' || j.owner_id) AND " +
         condition;
}

}  // namespace

std::vector<JobRow> SqliteStore::running_equals(const SharedAction& equals) {
  static const std::string kQuery = equals_that("j.state>3 AND j.state<6 AND j.cache<>3");
  return all<JobRow>(sql(kQuery).bind(equals.action, equals.share), read_job);
}

std::vector<JobRow> SqliteStore::waiting_equals(const SharedAction& equals, JobState state,
                                                RowId after, std::size_t limit) {
  static const std::string kQuery = equals_that(
      "unlikely(j.state=?3) AND j.id>?4 AND j.cache=1 AND j.unmet=0 AND j.set_waits=0 "
      "ORDER BY j.id LIMIT ?5");
  return all<JobRow>(
      sql(kQuery).bind(equals.action, equals.share, state, after, static_cast<std::int64_t>(limit)),
      read_job);
}

std::vector<RowId> SqliteStore::blocked_groups() {
  return all<RowId>(sql("SELECT min(id) FROM jobs WHERE state=1 AND state<7 AND action<>'' "
                        "GROUP BY tenant, owner_id, action ORDER BY 1"),
                    [](const Statement& row) { return row.integer(0); });
}

std::string SqliteStore::worker_version(const std::string& worker_id) {
  return one<std::string>(sql("SELECT version FROM workers WHERE id=?").bind(worker_id), first_text)
      .value_or("");
}

}  // namespace quasi::server
