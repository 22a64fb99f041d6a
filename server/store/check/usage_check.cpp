#include "server/store/check/usage_check.hpp"

namespace quasi::server {
namespace {

/// A query for the rows in which counts and totals differ: account, count, total.
struct Comparison {
  const char* what;
  const char* sql;
};

constexpr Comparison kComparisons[] = {
    {"unfinished jobs",
     "WITH counted AS (SELECT owner_id, tenant, sum(state<7) AS n FROM jobs GROUP BY 1, 2) "
     "SELECT owner_id || '/' || tenant, n, unfinished_jobs FROM counted FULL JOIN usage_totals "
     "USING (owner_id, tenant) WHERE coalesce(n, 0) IS NOT coalesce(unfinished_jobs, 0)"},
    {"running GPUs",
     "WITH counted AS (SELECT j.owner_id, j.tenant, sum(a.gpus) AS n FROM attempts a JOIN jobs j "
     "ON j.id=a.job_id WHERE a.outcome=0 GROUP BY 1, 2) "
     "SELECT owner_id || '/' || tenant, n, running_gpus FROM counted FULL JOIN usage_totals "
     "USING (owner_id, tenant) WHERE coalesce(n, 0) IS NOT coalesce(running_gpus, 0)"},
    {"reserved GPU milliseconds",
     "WITH counted AS (SELECT j.owner_id, j.tenant, sum(a.gpus * j.max_runtime_ms) AS n "
     "FROM attempts a JOIN jobs j ON j.id=a.job_id WHERE a.outcome=0 GROUP BY 1, 2) "
     "SELECT owner_id || '/' || tenant, n, reserved_gpu_ms FROM counted FULL JOIN usage_totals "
     "USING (owner_id, tenant) WHERE coalesce(n, 0) IS NOT coalesce(reserved_gpu_ms, 0)"},
    {"stored bytes",
     "WITH counted AS (SELECT h.principal_id, sum(b.size_bytes) AS n FROM blob_holders h "
     "JOIN blobs b ON b.digest=h.digest GROUP BY 1) "
     "SELECT principal_id, n, bytes FROM counted FULL JOIN stored_bytes USING (principal_id) "
     "WHERE coalesce(n, 0) IS NOT coalesce(bytes, 0)"},
};

}  // namespace

std::string usage_fault(Database& database) {
  for (const Comparison& each : kComparisons) {
    Statement rows(database, each.sql);
    if (rows.step())
      return std::string(each.what) + " of " + rows.text(0) + ": there are " +
             std::to_string(rows.integer(1)) + ", and the total is " +
             std::to_string(rows.integer(2));
  }
  return {};
}

}  // namespace quasi::server
