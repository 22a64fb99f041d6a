#include "server/queue/results/result_cache.hpp"

namespace quasi::server {
namespace {

/// Returns the name of the jobs that share results with a job of this owner.
std::string share_of(ResultSharing sharing, std::int64_t owner_id, const std::string& tenant) {
  return sharing == ResultSharing::kTenant ? "tenant " + tenant
                                           : "owner " + std::to_string(owner_id);
}

}  // namespace

void find_results(Store& store, const ResultCacheOptions& options, const Scope& scope,
                  std::vector<NewJob>& jobs) {
  if (options.sharing == ResultSharing::kNone) return;
  const std::string share = share_of(options.sharing, scope.principal_id, scope.tenant);
  for (NewJob& job : jobs)
    if (job.row.cache == CachePolicy::kUse && !job.row.action.empty())
      job.row.taken_from = store.find_result(share, job.row.action);
}

void keep_result(Store& store, const ResultCacheOptions& options, const JobRow& job,
                 const std::string& worker_version) {
  if (options.sharing == ResultSharing::kNone || job.cache == CachePolicy::kOff ||
      job.action.empty() || worker_version != options.version)
    return;
  store.keep_result(share_of(options.sharing, job.owner_id, job.tenant), job);
}

}  // namespace quasi::server
