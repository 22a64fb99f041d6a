#include "server/queue/results/result_cache.hpp"

namespace quasi::server {
namespace {

/// Returns the name of the jobs that share results with this one.
std::string share_of(const ResultCacheOptions& options, const JobRow& job) {
  return options.sharing == ResultSharing::kTenant ? "tenant " + job.tenant
                                                   : "owner " + std::to_string(job.owner_id);
}

bool may_take(const ResultCacheOptions& options, const JobRow& job) {
  return options.sharing != ResultSharing::kNone && job.cache == CachePolicy::kUse &&
         !job.action.empty();
}
bool offers(const ResultCacheOptions& options, const JobRow& job) {
  return options.sharing != ResultSharing::kNone && job.cache != CachePolicy::kOff &&
         !job.action.empty();
}

}  // namespace

std::optional<RowId> result_for(Store& store, const ResultCacheOptions& options,
                                const JobRow& job) {
  if (!may_take(options, job)) return std::nullopt;
  return store.find_result(share_of(options, job), job.action);
}

std::vector<JobRow> running_equals_of(Store& store, const ResultCacheOptions& options,
                                      const JobRow& job) {
  if (!may_take(options, job)) return {};
  return store.running_equals(share_of(options, job), job.action);
}

std::vector<JobRow> waiting_equals_of(Store& store, const ResultCacheOptions& options,
                                      const JobRow& job) {
  if (!offers(options, job)) return {};
  return store.waiting_equals(share_of(options, job), job.action);
}

void keep_result(Store& store, const ResultCacheOptions& options, const JobRow& job,
                 const std::string& worker_version) {
  if (!offers(options, job) || worker_version != options.version) return;
  store.keep_result(share_of(options, job), job);
}

}  // namespace quasi::server
