// The tables of the result cache (docs/reference/cache.md).

#include "server/store/query.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {

std::optional<RowId> SqliteStore::find_result(const std::string& share, const std::string& action) {
  return one<RowId>(sql("SELECT job_id FROM results r WHERE share=? AND action=? AND NOT EXISTS "
                        "(SELECT 1 FROM artifacts a LEFT JOIN blobs b ON b.digest=a.digest "
                        "WHERE a.job_id=r.job_id AND b.state IS NOT 1)")
                        .bind(share, action),
                    [](const Statement& row) { return row.integer(0); });
}

void SqliteStore::keep_result(const std::string& share, const JobRow& job) {
  sql("INSERT OR REPLACE INTO results VALUES (?,?,?)").bind(share, job.action, job.id).run();
}

void SqliteStore::set_source(RowId job, RowId source) {
  sql("UPDATE jobs SET taken_from=? WHERE id=?").bind(source, job).run();
}

void SqliteStore::take_result(RowId job, RowId source) {
  sql("INSERT INTO artifacts SELECT ?, name, digest, size_bytes, media_type FROM artifacts "
      "WHERE job_id=?")
      .bind(job, source)
      .run();
  sql("UPDATE jobs SET summary=(SELECT summary FROM jobs WHERE id=?) WHERE id=?")
      .bind(source, job)
      .run();
}

namespace {

/// Selects unfinished jobs of an action that share results, by the index of actions.
std::string equals_that(const char* condition) {
  return "SELECT " + std::string(kJobColumns) +
         " FROM jobs j WHERE j.action=?1 AND j.action<>'' AND j.state<7 AND "
         "?2 IN ('tenant ' || j.tenant, 'owner ' || j.owner_id) AND " +
         condition + " ORDER BY j.id";
}

}  // namespace

std::vector<JobRow> SqliteStore::running_equals(const std::string& share,
                                                const std::string& action) {
  static const std::string kQuery = equals_that("j.state IN (4, 5) AND j.cache<>3");
  return all<JobRow>(sql(kQuery).bind(action, share), read_job);
}

std::vector<JobRow> SqliteStore::waiting_equals(const std::string& share,
                                                const std::string& action) {
  static const std::string kQuery = equals_that(
      "j.state IN (1, 3) AND j.cache=1 AND j.unmet=0 AND "
      "j.set_waits=0");
  return all<JobRow>(sql(kQuery).bind(action, share), read_job);
}

}  // namespace quasi::server
