// The tables of jobs that wait for others (docs/reference/sweeps.md).

#include "server/store/query.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {
namespace {

JobInput read_input(const Statement& row) {
  return {.slot = row.text(0), .digest = row.text(1), .size_bytes = row.integer(2)};
}

}  // namespace

void SqliteStore::insert_dependency(RowId job, RowId on, Condition condition) {
  sql("INSERT INTO job_dependencies VALUES (?,?,?)").run(job, on, condition);
}

void SqliteStore::insert_artifact_input(RowId job, RowId on, const ArtifactInput& input) {
  sql("INSERT INTO artifact_inputs VALUES (?,?,?,?)").run(job, input.slot, on, input.artifact);
}

std::vector<Store::Dependent> SqliteStore::dependents_of(RowId job) {
  static const std::string kQuery =
      "SELECT " + std::string(kJobColumns) +
      ", d.condition FROM job_dependencies d JOIN jobs j ON j.id=d.job_id WHERE d.on_job=? AND "
      "j.unmet>0 AND j.state<3 ORDER BY d.job_id";
  return all<Dependent>(sql(kQuery).bind(job), [](const Statement& row) {
    return Dependent{.job = read_job(row),
                     .condition = static_cast<Condition>(row.small(kJobColumnCount))};
  });
}

std::vector<JobRow> SqliteStore::awaited_by(RowId job, std::int32_t limit) {
  static const std::string kQuery =
      "SELECT " + std::string(kJobColumns) +
      " FROM job_dependencies d JOIN jobs j ON j.id=d.on_job WHERE d.job_id=? AND j.state<7 "
      "ORDER BY d.on_job LIMIT ?";
  return all<JobRow>(sql(kQuery).bind(job, limit), read_job);
}

std::vector<ArtifactInput> SqliteStore::artifact_inputs(RowId job, RowId on) {
  return all<ArtifactInput>(
      sql("SELECT slot, artifact FROM artifact_inputs WHERE job_id=? AND on_job=?").bind(job, on),
      [](const Statement& row) {
        return ArtifactInput{.slot = row.text(0), .job = {}, .artifact = row.text(1), .field = {}};
      });
}

std::optional<ArtifactRow> SqliteStore::find_artifact(RowId job, const std::string& name) {
  return one<ArtifactRow>(
      sql("SELECT name, digest, size_bytes, media_type FROM artifacts WHERE job_id=? AND name=?")
          .bind(job, name),
      [](const Statement& row) {
        return ArtifactRow{.name = row.text(0),
                           .digest = row.text(1),
                           .size_bytes = row.integer(2),
                           .media_type = row.text(3)};
      });
}

void SqliteStore::insert_input(RowId job, const JobInput& input) {
  sql("INSERT INTO job_inputs VALUES (?,?,?,?)")
      .run(job, input.slot, input.digest, input.size_bytes);
}

std::vector<JobInput> SqliteStore::inputs_of(RowId job) {
  return all<JobInput>(
      sql("SELECT slot, digest, size_bytes FROM job_inputs WHERE job_id=?").bind(job), read_input);
}

std::vector<JobInput> SqliteStore::made_inputs_of(RowId job) {
  return all<JobInput>(sql("SELECT i.slot, i.digest, i.size_bytes FROM artifact_inputs a JOIN "
                           "job_inputs i ON i.job_id=a.job_id AND i.slot=a.slot WHERE a.job_id=?")
                           .bind(job),
                       read_input);
}

void SqliteStore::set_action(RowId job, const std::string& action) {
  sql("UPDATE jobs SET action=? WHERE id=?").run(action, job);
}

}  // namespace quasi::server
