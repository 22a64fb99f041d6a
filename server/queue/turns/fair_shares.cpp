#include "server/queue/turns/fair_shares.hpp"

#include <algorithm>
#include <cmath>

namespace quasi::server {
namespace {

constexpr std::int64_t kDayMs = 86'400'000;
/// Shares of an account for which none were set.
constexpr std::int64_t kUsualShares = 100;
/// Time that is expected of an attempt at its grant, unless its limit is shorter.
constexpr std::int64_t kExpectedMs = 600'000;
/// Past use counts for that many half-lives after a restart; older use counts less than 0.1 %.
constexpr std::int64_t kHalfLivesKept = 10;

template <class Key>
double share_of(const std::map<Key, std::int64_t>& shares, const Key& key) {
  const auto known = shares.find(key);
  return static_cast<double>(known == shares.end() ? kUsualShares : known->second);
}

template <class Key>
double use_of(const std::map<Key, double>& uses, const Key& key) {
  const auto known = uses.find(key);
  return known == uses.end() ? 0.0 : known->second;
}

}  // namespace

void FairShares::recover(Store& store, Now now) {
  of_tenant_.clear();
  of_owner_.clear();
  last_use_ms_.clear();
  running_.clear();
  forget_shares();
  origin_ms_ = now.monotonic_ms;
  const std::int64_t first_day = (now.wall_ms - kHalfLivesKept * half_life_ms_) / kDayMs;
  for (const DayUse& use : store.day_uses(first_day)) {
    // The moments of the day are not known any more, so its middle stands for them.
    const std::int64_t age_ms =
        std::max<std::int64_t>(now.wall_ms - (use.day * kDayMs + kDayMs / 2), 0);
    charge({use.tenant, use.owner_id}, use.slot_ms, now.monotonic_ms - age_ms);
  }
  for (const AttemptRow& attempt : store.open_attempts())
    if (const auto job = store.job(attempt.job_id)) begin(*job, attempt.fence, now);
}

void FairShares::begin(const JobRow& job, std::int64_t fence, Now now) {
  const Running running{.owner = {job.tenant, job.owner_id},
                        .slots = std::max(job.gpus, 1),
                        .began_ms = now.monotonic_ms,
                        .charged_ms = std::min(kExpectedMs, job.max_runtime_ms)};
  charge(running.owner, running.slots * running.charged_ms, now.monotonic_ms);
  running_[fence] = running;
}

void FairShares::refresh(Now now) {
  for (auto& [fence, running] : running_) {
    const std::int64_t elapsed_ms = now.monotonic_ms - running.began_ms;
    if (elapsed_ms <= running.charged_ms) continue;
    charge(running.owner, running.slots * (elapsed_ms - running.charged_ms), now.monotonic_ms);
    running.charged_ms = elapsed_ms;
  }
}

void FairShares::end(std::int64_t fence, Now now) {
  const auto found = running_.find(fence);
  if (found == running_.end()) return;
  const Running& running = found->second;
  const std::int64_t elapsed_ms = now.monotonic_ms - running.began_ms;
  charge(running.owner, running.slots * (elapsed_ms - running.charged_ms), now.monotonic_ms);
  running_.erase(found);
}

double FairShares::rank_of(Store& store, const std::string& tenant) {
  learn_shares(store);
  return use_of(of_tenant_, tenant) / share_of(tenant_shares_, tenant);
}

double FairShares::rank_of(Store& store, const std::string& tenant, std::int64_t owner_id) {
  learn_shares(store);
  return use_of(of_owner_, Owner(tenant, owner_id)) / share_of(owner_shares_, owner_id);
}

bool FairShares::has_been_idle(const std::string& tenant, std::int64_t owner_id,
                               std::int64_t period_ms, Now now) const {
  const auto last = last_use_ms_.find(Owner(tenant, owner_id));
  return last == last_use_ms_.end() || last->second <= now.monotonic_ms - period_ms;
}

double FairShares::weight_at(std::int64_t monotonic_ms) const {
  return std::exp2(static_cast<double>(monotonic_ms - origin_ms_) /
                   static_cast<double>(half_life_ms_));
}

void FairShares::charge(const Owner& owner, std::int64_t slot_ms, std::int64_t monotonic_ms) {
  const double use = static_cast<double>(slot_ms) * weight_at(monotonic_ms);
  of_owner_[owner] += use;
  const auto last = last_use_ms_.try_emplace(owner, monotonic_ms).first;
  last->second = std::max(last->second, monotonic_ms);
  of_tenant_[owner.first] += use;
}

void FairShares::learn_shares(Store& store) {
  if (are_shares_known_) return;
  tenant_shares_.clear();
  owner_shares_.clear();
  for (const auto& [account, allowance] : store.allowances()) {
    if (!allowance.shares) continue;
    if (account.principal_id)
      owner_shares_[*account.principal_id] = *allowance.shares;
    else
      tenant_shares_[account.tenant] = *allowance.shares;
  }
  are_shares_known_ = true;
}

}  // namespace quasi::server
