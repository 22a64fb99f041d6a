// Reads the sets of jobs.

#include "server/queue/refused.hpp"
#include "server/store/query.hpp"
#include "server/store/read_store.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {
namespace {

const std::string kSetColumns =
    "SELECT j.id, j.uid, j.name, j.tenant, j.created_ms, j.max_concurrent, j.stop_after_failures, "
    "j.stopped_ms, j.stop_reason, coalesce((SELECT p.name FROM principals p WHERE "
    "p.id=j.owner_id), 'local')";

JobSetView read_set(const Statement& row) {
  JobSetView view;
  view.row.id = row.integer(0);
  view.row.uid = row.text(1);
  view.row.name = row.text(2);
  view.row.tenant = row.text(3);
  view.row.created_ms = row.integer(4);
  view.row.max_concurrent = row.integer(5);
  view.row.stop_after_failures = row.integer(6);
  view.row.stopped_ms = row.integer(7);
  view.row.stop_reason = row.text(8);
  view.owner = row.text(9);
  return view;
}

}  // namespace

std::optional<JobSetView> ReadStore::find_set(const Scope& scope,
                                              const std::string& uid_or_prefix) {
  Statement& statement = sql(kSetColumns +
                             ", j.axes FROM job_sets j WHERE j.uid >= ?4 AND j.uid < ?5 "
                             "AND " +
                             std::string(kJobInScope) + " ORDER BY j.uid LIMIT 2");
  // '~' comes after every character of an id.
  Rows rows(statement.bind(scope.is_everything, scope.principal_id, scope.tenant, uid_or_prefix,
                           uid_or_prefix + "~"));
  if (!rows.next()) return std::nullopt;
  JobSetView view = read_set(*rows);
  view.row.axes = rows->text(10);
  if (rows.next())
    throw Refused(
        Refusal::kInvalidArgument, "FIELD_INVALID",
        "job_set_id: several job sets begin with " + uid_or_prefix + "; give more characters");
  view.counts = counts_of_set(view.row.id);
  view.row.stop_rules = stop_rules_of(view.row.id);
  return view;
}

std::vector<JobSetView> ReadStore::list_sets(const Scope& scope, RowId cursor, std::int32_t limit) {
  Statement& statement =
      sql(kSetColumns + " FROM job_sets j WHERE (?4=0 OR j.id<?4) AND " + std::string(kJobInScope) +
          " AND EXISTS (SELECT 1 FROM jobs x WHERE x.set_id=j.id AND x.deleted_ms=0) "
          "ORDER BY j.id DESC LIMIT ?5");
  auto views = all<JobSetView>(
      statement.bind(scope.is_everything, scope.principal_id, scope.tenant, cursor, limit),
      read_set);
  for (JobSetView& view : views) view.counts = counts_of_set(view.row.id);
  return views;
}

std::vector<std::pair<JobState, std::int64_t>> ReadStore::counts_of_set(RowId set) {
  Statement& statement =
      sql("SELECT state, count(*) FROM jobs WHERE set_id=? AND deleted_ms=0 "
          "GROUP BY state ORDER BY state");
  return all<std::pair<JobState, std::int64_t>>(statement.bind(set), [](const Statement& row) {
    return std::pair(static_cast<JobState>(row.small(0)), row.integer(1));
  });
}

}  // namespace quasi::server
