// The stop rules of the sets of jobs, for the writer and for readers.

#include "server/store/query.hpp"
#include "server/store/read_store.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {
namespace {

const char kRulesOfSet[] =
    "SELECT figure, comparison, value, jobs, met, lacking FROM stop_rules WHERE set_id=? "
    "ORDER BY position";
// The reason of a cancel stands at the first of its events: 6 is CANCELLING, 9 is CANCELLED.
const char kCancelReason[] =
    "SELECT message FROM events WHERE job_id=? AND job_seq>0 AND to_state IN (6, 9) AND "
    "message<>'' "
    "ORDER BY job_seq LIMIT 1";

StopRuleRow read_rule(const Statement& row) {
  return {.condition = {.figure = row.text(0),
                        .comparison = static_cast<wire::Comparison>(row.small(1)),
                        .value = row.real(2),
                        .jobs = row.integer(3)},
          .met = row.integer(4),
          .lacking = row.integer(5)};
}

}  // namespace

void SqliteStore::insert_stop_rules(RowId set, const std::vector<StopRuleRow>& rules) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const wire::StopCondition& condition = rules[i].condition;
    sql("INSERT INTO stop_rules (set_id, position, figure, comparison, value, jobs) "
        "VALUES (?,?,?,?,?,?)")
        .run(set, static_cast<std::int64_t>(i), condition.figure,
             static_cast<std::int64_t>(condition.comparison), condition.value, condition.jobs);
  }
}

std::vector<StopRuleRow> SqliteStore::stop_rules_of(RowId set) {
  return all<StopRuleRow>(sql(kRulesOfSet).bind(set), read_rule);
}

void SqliteStore::count_in_stop_rule(RowId set, std::size_t position, bool has_figure) {
  sql("UPDATE stop_rules SET met=met+?, lacking=lacking+? WHERE set_id=? AND position=?")
      .run(has_figure ? 1 : 0, has_figure ? 0 : 1, set, static_cast<std::int64_t>(position));
}

std::string SqliteStore::summary_of(RowId job) {
  return one<std::string>(sql("SELECT summary FROM jobs WHERE id=?").bind(job), first_text)
      .value_or("");
}

std::string SqliteStore::cancel_reason(RowId job) {
  return one<std::string>(sql(kCancelReason).bind(job), first_text).value_or("");
}

std::vector<StopRuleRow> ReadStore::stop_rules_of(RowId set) {
  Statement& statement = sql(kRulesOfSet);
  return all<StopRuleRow>(statement.bind(set), read_rule);
}

std::string ReadStore::cancel_reason(RowId job) {
  Statement& statement = sql(kCancelReason);
  return one<std::string>(statement.bind(job), first_text).value_or("");
}

}  // namespace quasi::server
