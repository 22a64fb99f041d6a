#include "server/queue/turns/quotas.hpp"

#include <algorithm>
#include <cstdio>

#include "server/queue/refused.hpp"

namespace quasi::server {
namespace {

constexpr const char* kRemedy = "ask an admin for more: quasi admin quota";

std::string hours(std::int64_t ms) {
  char text[48];
  std::snprintf(text, sizeof text, "%.4g", static_cast<double>(ms) / 3.6e6);
  return text;
}

/// Returns the words for an account in a sentence to one of its users.
std::string whose(const Account& account) {
  return account.principal_id ? "your quota" : "the quota of tenant " + account.tenant;
}

std::vector<Account> accounts_of(const Scope& scope) {
  return {Account::of_principal(scope.principal_id), Account::of_tenant(scope.tenant)};
}

Refused over_quota(const char* reason, const std::string& message) {
  return Refused(Refusal::kResourceExhausted, reason, message);
}

/// Refuses a job that could never start within the quota.
void require_startable(const Allowance& quota, const std::string& owner, const JobRow& job,
                       std::int64_t max_runtime_ms, const std::string& path) {
  if (quota.running_gpus && job.gpus > *quota.running_gpus)
    throw over_quota("QUOTA_GPUS", path + ".spec.resources.gpus: is " + std::to_string(job.gpus) +
                                       ", and " + owner + " is " +
                                       std::to_string(*quota.running_gpus) +
                                       " running GPUs; ask for fewer, or " + kRemedy);
  const std::int64_t gpu_ms = job.gpus * max_runtime_ms;
  if (quota.gpu_ms && gpu_ms > *quota.gpu_ms)
    throw over_quota("QUOTA_GPU_HOURS",
                     path + ".spec.max_runtime: " + hours(max_runtime_ms) + " h on " +
                         std::to_string(job.gpus) + " GPUs are " + hours(gpu_ms) +
                         " GPU-hours, and " + owner + " is " + hours(*quota.gpu_ms) +
                         " GPU-hours in 30 days; set a shorter limit, or " + kRemedy);
}

}  // namespace

Allowance allowance_in_effect(Store& store, const Account& account, const QuotaDefaults& defaults) {
  const Allowance& other = account.principal_id ? defaults.user : defaults.tenant;
  Allowance allowance = store.allowance_of(account);
  const auto fill = [&](std::optional<std::int64_t> Allowance::*value) {
    if (!(allowance.*value)) allowance.*value = other.*value;
  };
  fill(&Allowance::shares);
  fill(&Allowance::unfinished_jobs);
  fill(&Allowance::running_gpus);
  fill(&Allowance::gpu_ms);
  fill(&Allowance::stored_bytes);
  return allowance;
}

void require_quota(Store& store, const Scope& scope, const std::vector<NewJob>& jobs,
                   const QuotaDefaults& defaults, std::int64_t default_max_runtime_ms) {
  // A job that took a result has ended.
  const std::int64_t n_new = std::count_if(jobs.begin(), jobs.end(),
                                           [](const NewJob& job) { return !job.row.taken_from; });
  for (const Account& account : accounts_of(scope)) {
    const Allowance quota = allowance_in_effect(store, account, defaults);
    if (quota.unfinished_jobs) {
      const std::int64_t known = store.jobs_of_account(account).unfinished_jobs;
      if (n_new > 0 && known + n_new > *quota.unfinished_jobs)
        throw over_quota("QUOTA_QUEUED", "jobs: " + std::to_string(n_new) + " new and " +
                                             std::to_string(known) +
                                             " that wait or run are more than " + whose(account) +
                                             ", " + std::to_string(*quota.unfinished_jobs) +
                                             "; wait until some have ended, or " + kRemedy);
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const JobRow& job = jobs[i].row;
      if (job.gpus > 0 && !job.taken_from)
        require_startable(quota, whose(account), job,
                          job.max_runtime_ms > 0 ? job.max_runtime_ms : default_max_runtime_ms,
                          "jobs[" + std::to_string(i) + "]");
    }
    if (quota.stored_bytes && store.bytes_of_account(account) > *quota.stored_bytes)
      throw over_quota("QUOTA_BYTES", "jobs: " + std::to_string(store.bytes_of_account(account)) +
                                          " bytes are stored, and " + whose(account) + " is " +
                                          std::to_string(*quota.stored_bytes) +
                                          "; delete jobs that have ended, or " + kRemedy);
  }
}

void require_room_for_bytes(Store& store, const Scope& scope, std::int64_t bytes,
                            const QuotaDefaults& defaults) {
  for (const Account& account : accounts_of(scope)) {
    const Allowance quota = allowance_in_effect(store, account, defaults);
    if (!quota.stored_bytes) continue;
    const std::int64_t stored = store.bytes_of_account(account);
    if (bytes <= *quota.stored_bytes - stored) continue;
    throw over_quota("QUOTA_BYTES", "header.size_bytes: " + std::to_string(bytes) +
                                        " new bytes and " + std::to_string(stored) +
                                        " stored ones are more than " + whose(account) + ", " +
                                        std::to_string(*quota.stored_bytes) +
                                        "; delete jobs that have ended, or " + kRemedy);
  }
}

const RunningQuotas::Room& RunningQuotas::room_of(const Account& account) {
  const auto read = [&] {
    Room room{.quota = allowance_in_effect(store_, account, defaults_), .used = {}};
    if (room.quota.running_gpus || room.quota.gpu_ms) room.used = store_.jobs_of_account(account);
    if (room.quota.gpu_ms)
      room.used.gpu_ms = store_.gpu_ms_of_account(account, first_usage_day(now_.wall_ms));
    return room;
  };
  if (account.principal_id) {
    const auto known = of_owner_.find(*account.principal_id);
    if (known != of_owner_.end()) return known->second;
    return of_owner_.emplace(*account.principal_id, read()).first->second;
  }
  const auto known = of_tenant_.find(account.tenant);
  if (known != of_tenant_.end()) return known->second;
  return of_tenant_.emplace(account.tenant, read()).first->second;
}

std::string RunningQuotas::why_not(const JobRow& job, std::int32_t gpus) {
  if (gpus == 0) return {};
  for (const Account& account :
       {Account::of_principal(job.owner_id), Account::of_tenant(job.tenant)}) {
    const Room& room = room_of(account);
    const std::string owner = account.principal_id ? "its owner" : "tenant " + job.tenant;
    if (room.quota.running_gpus && room.used.running_gpus + gpus > *room.quota.running_gpus)
      return "jobs of " + owner + " run on " + std::to_string(room.used.running_gpus) +
             " GPUs, and the quota is " + std::to_string(*room.quota.running_gpus) +
             "; it waits until one of them has ended";
    const std::int64_t spent_ms = room.used.gpu_ms + room.used.reserved_gpu_ms;
    if (room.quota.gpu_ms && spent_ms + gpus * job.max_runtime_ms > *room.quota.gpu_ms)
      return "jobs of " + owner + " have " + hours(spent_ms) +
             " GPU-hours in 30 days with the time limits of running ones, its own limit adds " +
             hours(gpus * job.max_runtime_ms) + ", and the quota is " + hours(*room.quota.gpu_ms) +
             "; it waits until there is room";
  }
  return {};
}

}  // namespace quasi::server
