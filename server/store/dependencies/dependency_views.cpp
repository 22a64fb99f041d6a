// Reads the jobs that a job waits for.

#include "server/store/query.hpp"
#include "server/store/read_store.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {

std::vector<AwaitedView> ReadStore::dependencies_of(const Scope& scope, RowId job) {
  Statement& statement =
      sql("SELECT j.uid, j.name, j.state, d.condition FROM job_dependencies d JOIN "
          "jobs j ON j.id=d.on_job WHERE d.job_id=?4 AND j.deleted_ms=0 AND " +
          std::string(kJobInScope) + " ORDER BY d.on_job");
  return all<AwaitedView>(
      statement.bind(scope.is_everything, scope.principal_id, scope.tenant, job),
      [](const Statement& row) {
        return AwaitedView{.uid = row.text(0),
                           .name = row.text(1),
                           .state = static_cast<JobState>(row.small(2)),
                           .condition = static_cast<Condition>(row.small(3))};
      });
}

std::vector<ReadStore::MadeInput> ReadStore::made_inputs_of(RowId job) {
  Statement& statement =
      sql("SELECT a.slot, i.digest, coalesce(i.size_bytes, 0), j.uid FROM "
          "artifact_inputs a JOIN jobs j ON j.id=a.on_job LEFT JOIN job_inputs i ON "
          "i.job_id=a.job_id AND i.slot=a.slot WHERE a.job_id=?");
  return all<MadeInput>(statement.bind(job), [](const Statement& row) {
    return MadeInput{
        .input = {.slot = row.text(0), .digest = row.text(1), .size_bytes = row.integer(2)},
        .job_uid = row.text(3)};
  });
}

}  // namespace quasi::server
