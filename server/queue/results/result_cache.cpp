#include "server/queue/results/result_cache.hpp"

namespace quasi::server {
namespace {

bool may_take(const ResultCacheOptions& options, const JobRow& job) {
  return options.sharing != ResultSharing::kNone && job.cache == CachePolicy::kUse &&
         !job.action.empty();
}
bool offers(const ResultCacheOptions& options, const JobRow& job) {
  return options.sharing != ResultSharing::kNone && job.cache != CachePolicy::kOff &&
         !job.action.empty();
}

/// True if no worker ever gets `later` before `earlier`: they wait in the same queue and need the
/// same device.
bool comes_first(const JobRow& earlier, const JobRow& later) {
  return earlier.ready && (later.id == 0 || earlier.id < later.id) && earlier.pool == later.pool &&
         earlier.owner_id == later.owner_id && earlier.tenant == later.tenant &&
         earlier.priority == later.priority && earlier.placement() == later.placement() &&
         earlier.memory_bytes == later.memory_bytes &&
         earlier.max_runtime_ms == later.max_runtime_ms &&
         earlier.avoid_device == later.avoid_device;
}

}  // namespace

SharedAction shared_action_of(const ResultCacheOptions& options, const JobRow& job) {
  return {.share = options.sharing == ResultSharing::kTenant
                       ? "tenant " + job.tenant
                       : "owner " + std::to_string(job.owner_id),
          .action = job.action};
}

std::optional<RowId> result_for(Store& store, const ResultCacheOptions& options,
                                const JobRow& job) {
  if (!may_take(options, job)) return std::nullopt;
  return store.find_result(shared_action_of(options, job));
}

bool an_equal_runs(Store& store, const ResultCacheOptions& options, const JobRow& job) {
  if (options.sharing == ResultSharing::kNone) return false;
  for (const JobRow& other : store.running_equals(shared_action_of(options, job))) {
    const auto attempt = other.open_attempt ? store.attempt(*other.open_attempt) : std::nullopt;
    // The result of a worker of another version is not kept.
    if (attempt && store.worker_version(attempt->worker_id) == options.version) return true;
  }
  return false;
}

bool waits_for_an_equal(Store& store, const ResultCacheOptions& options, const JobRow& job) {
  if (!may_take(options, job)) return false;
  if (an_equal_runs(store, options, job)) return true;
  return one_comes_first(queued_equals(store, options, job), job);
}

std::vector<JobRow> queued_equals(Store& store, const ResultCacheOptions& options,
                                  const JobRow& job) {
  if (options.sharing == ResultSharing::kNone) return {};
  return store.waiting_equals(shared_action_of(options, job), JobState::kQueued, 0, kMostEquals);
}

bool one_comes_first(const std::vector<JobRow>& queued, const JobRow& job) {
  for (const JobRow& other : queued)
    if (comes_first(other, job)) return true;
  return false;
}

void keep_result(Store& store, const ResultCacheOptions& options, const JobRow& job,
                 const std::string& worker_version) {
  if (!offers(options, job) || worker_version != options.version) return;
  store.keep_result(shared_action_of(options, job), job.id);
}

}  // namespace quasi::server
