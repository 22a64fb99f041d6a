#include "server/store/check/invariant_check.hpp"

#include "server/store/check/usage_check.hpp"

namespace quasi::server {
namespace {

/// A query for the rows that contradict a rule. Its first column names the row.
struct Rule {
  const char* fault;  ///< begins the sentence; the name of the row follows
  const char* sql;
};

constexpr Rule kRules[] = {
    {"damage of the file: ", "SELECT * FROM pragma_integrity_check(8) WHERE integrity_check<>'ok'"},
    {"a row refers to a missing row, in the table ",
     "SELECT \"table\" || ', row ' || coalesce(rowid, '?') FROM pragma_foreign_key_check"},
    {"I2: more than one attempt succeeded of job ",
     "SELECT j.uid FROM attempts a JOIN jobs j ON j.id=a.job_id WHERE a.outcome=1 "
     "GROUP BY j.id HAVING count(*)>1"},
    {"I2: a result is stored of a job that did not succeed: ",
     "SELECT DISTINCT j.uid FROM artifacts r JOIN jobs j ON j.id=r.job_id WHERE j.state<>7"},
    {"I3: a final state was left by job ",
     "SELECT j.uid FROM events e JOIN events f ON f.job_id=e.job_id AND f.job_seq=e.job_seq+1 "
     "AND f.job_seq>0 JOIN jobs j ON j.id=e.job_id "
     "WHERE e.job_seq>0 AND e.to_state>=7 AND f.to_state<>e.to_state"},
    {"I4: the newest fence is below the one of attempt ",
     "SELECT uid FROM attempts WHERE fence > (SELECT value FROM counters WHERE name='fence')"},
    {"I4: the newest attempt has another fence than its job ",
     "SELECT j.uid FROM jobs j WHERE j.fence <> "
     "coalesce((SELECT max(fence) FROM attempts a WHERE a.job_id=j.id), j.fence)"},
    {"I6: the open attempt is another one than that of job ",
     "SELECT j.uid FROM jobs j LEFT JOIN attempts a ON a.job_id=j.id AND a.outcome=0 "
     "WHERE j.open_attempt IS NOT a.id"},
    {"I8: a change of state has no event, or an event is wrong, of job ",
     "SELECT j.uid FROM jobs j LEFT JOIN events e ON e.job_id=j.id AND e.job_seq=j.job_seq "
     "AND e.job_seq>0 WHERE e.to_state IS NOT j.state OR j.job_seq <> "
     "(SELECT count(*) FROM events n WHERE n.job_id=j.id AND n.job_seq>0)"},
    {"I11: a job needs a file that the store does not have: ",
     "SELECT DISTINCT digest FROM (SELECT digest, job_id FROM job_inputs "
     "UNION ALL SELECT digest, job_id FROM artifacts UNION ALL SELECT digest, job_id FROM "
     "checkpoints) r JOIN jobs j ON j.id=r.job_id WHERE j.deleted_ms=0 "
     "AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.digest=r.digest AND b.state IN (1, 3))"},
};

}  // namespace

std::vector<std::string> invariant_faults(Database& database, std::size_t limit) {
  std::vector<std::string> faults;
  for (const Rule& rule : kRules) {
    Statement rows(database, rule.sql);
    for (std::size_t n = 0; rows.step(); ++n) {
      if (n == limit) {
        faults.push_back(std::string(rule.fault) + "more of them");
        break;
      }
      faults.push_back(rule.fault + rows.text(0));
    }
    // Counting on after damage would fail for reasons that are damage again.
    if (&rule == kRules && !faults.empty()) return faults;
  }
  const std::string usage = usage_fault(database);
  if (!usage.empty()) faults.push_back("I14: " + usage);
  return faults;
}

}  // namespace quasi::server
