#include "server/queue/turns/explanation.hpp"

#include <algorithm>
#include <set>

#include "server/queue/schedulable.hpp"

namespace quasi::server {
namespace {

/// Bounds of the work that one explanation makes for the writer.
constexpr std::size_t kMostWorkers = 16;
constexpr std::size_t kMostBlocking = 16;

/// Returns the workers of the job's pool that are online, run its kind and do not drain.
std::vector<const Fleet::Member*> candidates(const JobRow& job, const Moment& moment) {
  std::vector<const Fleet::Member*> found;
  for (const auto& [id, member] : moment.fleet.members())
    if (member.worker.pool == job.pool && member.takes_jobs() && runs_kind(member, job.kind) &&
        moment.rules.now.monotonic_ms - member.last_seen_ms <= moment.rules.lease_ttl_ms)
      found.push_back(&member);
  return found;
}

std::string minutes(std::int64_t ms) { return std::to_string(ms / 60'000) + " min"; }

/// Returns the sentence for a job that no worker can hold.
std::string unfit(const JobRow& job, const std::vector<const Fleet::Member*>& members) {
  std::vector<WorkerRow> rows;
  for (const Fleet::Member* member : members) rows.push_back(member->worker);
  const Prospect prospect = prospect_of(job, rows);
  if (prospect.chance == Chance::kTooLarge) return "the job " + prospect.why;
  if (prospect.chance == Chance::kNone) return prospect.why;
  for (const Fleet::Member* member : members)
    for (const auto& [id, status] : member->devices)
      if (!is_usable(status))
        return "device " + id + " of worker '" + member->worker.name + "' is " +
               (status.closed.empty() ? "not ready" : status.closed) +
               (status.state_reason.empty() ? "" : ": " + status.state_reason);
  return "no device of pool " + job.pool + " has enough free memory at present";
}

/// Returns the attempts of a worker on devices that the job could use.
std::vector<AttemptRow> in_the_way(const JobRow& job, const Fleet::Member& member,
                                   const std::vector<AttemptRow>& open) {
  std::vector<AttemptRow> found;
  for (const AttemptRow& attempt : open)
    if (std::any_of(attempt.device_ids.begin(), attempt.device_ids.end(),
                    [&](const std::string& id) {
                      const auto device = member.devices.find(id);
                      return device != member.devices.end() &&
                             backend_fits(job.device, job.gpus, device->second.device.backend);
                    }))
      found.push_back(attempt);
  return found;
}

/// Returns the number of GPUs that the job would get of these slots.
std::int32_t gpus_of(const JobRow& job, const Fleet& fleet, const Fleet::Member& member,
                     const std::vector<UsableSlot>& free) {
  const auto chosen = slots_for(job, fleet, member, free);
  return static_cast<std::int32_t>(
      std::count_if(chosen.begin(), chosen.end(),
                    [&](std::size_t index) { return free[index].backend == Backend::kCuda; }));
}

/// Says how long a job may run, and how long its kind takes if that is known to be less.
std::string time_of(const JobRow& job, const Fleet& fleet) {
  const std::int64_t expected_ms = fleet.expected_ms(job);
  return "may run " + minutes(job.max_runtime_ms) +
         (expected_ms < job.max_runtime_ms
              ? " and is expected to take " + minutes(expected_ms) + " as others of its kind"
              : std::string());
}

/// Gathers the jobs that hold the slots of the workers that fit.
class Blockers {
 public:
  Blockers(Store& store, const Scope& scope, const JobRow& job, const Moment& moment)
      : store_(store), scope_(scope), job_(job), moment_(moment) {}

  void add(const Fleet::Member& member, const std::vector<AttemptRow>& attempts) {
    std::vector<std::int64_t> ends, expected;
    for (const AttemptRow& attempt : attempts) {
      const auto other = store_.job(attempt.job_id);
      if (!other) continue;
      const std::int64_t began = attempt.started_ms > 0 ? attempt.started_ms : attempt.granted_ms;
      ends.push_back(began + other->max_runtime_ms);
      expected.push_back(std::max(began + moment_.fleet.expected_ms(*other), now_ms()));
      ++count_;
      if (uids_.size() < kMostBlocking && is_visible(scope_, *other)) uids_.push_back(other->uid);
    }
    if (ends.empty()) return;
    const bool takes_one = job_.gpus <= 1 && job_.memory_bytes == 0 && member.devices.size() == 1;
    const auto keep_earliest = [takes_one](std::vector<std::int64_t>& times, std::int64_t& kept) {
      // At the last time all attempts in the way have ended, so every slot is free.
      const auto [first, last] = std::minmax_element(times.begin(), times.end());
      const std::int64_t end = takes_one ? *first : *last;
      kept = kept == 0 ? end : std::min(kept, end);
    };
    keep_earliest(ends, latest_ms_);
    keep_earliest(expected, expected_ms_);
  }
  /// A job that ran past its expected time may end at any moment.
  std::int64_t now_ms() const { return moment_.rules.now.wall_ms; }
  void write(Explanation& explanation) && {
    explanation.reason = WaitReason::kBusy;
    explanation.message = "every slot that fits is taken; " + std::to_string(count_) +
                          (count_ == 1 ? " running job holds them" : " running jobs hold them");
    explanation.blocking = std::move(uids_);
    explanation.blocking_jobs = count_;
    explanation.latest_ms = latest_ms_;
    explanation.expected_ms = expected_ms_;
  }

 private:
  Store& store_;
  const Scope& scope_;
  const JobRow& job_;
  const Moment& moment_;
  std::vector<std::string> uids_;
  std::int64_t count_ = 0;
  std::int64_t latest_ms_ = 0, expected_ms_ = 0;
};

/// Explains a job that is ready.
void explain_ready(Store& store, const Scope& scope, const Moment& moment,
                   Explanation& explanation) {
  const JobRow& job = explanation.job;
  const auto members = candidates(job, moment);
  const auto say = [&](WaitReason reason, const std::string& message) {
    explanation.reason = reason;
    explanation.message = message;
  };
  if (members.empty())
    return say(WaitReason::kNoWorker,
               "no worker of pool " + job.pool + " is online and takes jobs of kind " + job.kind);
  Blockers blockers(store, scope, job, moment);
  RunningQuotas quotas(store, moment.rules.quotas, moment.rules.now);
  std::string quota = quotas.why_not(job, job.gpus);
  if (!quota.empty()) return say(WaitReason::kQuota, quota);
  std::string behind_at;
  std::size_t fitting = 0;
  std::optional<std::int64_t> most_time_left_ms;
  for (const Fleet::Member* member : members) {
    TurnRules rules = moment.rules;
    if (member->ends_ms)
      rules.time_left_ms = std::max<std::int64_t>(0, *member->ends_ms - rules.now.monotonic_ms);
    if (!has_time_for(job, moment.fleet, rules.time_left_ms)) {
      most_time_left_ms = std::max(most_time_left_ms, rules.time_left_ms);
      continue;
    }
    const std::vector<FreeSlot> offered = all_slots(*member);
    if (slots_for(job, moment.fleet, *member, usable_slots(*member, offered, {})).empty()) continue;
    if (++fitting > kMostWorkers) break;
    const auto open = store.open_attempts_of(member->worker.id);
    const auto free = usable_slots(*member, offered, open);
    if (slots_for(job, moment.fleet, *member, free).empty()) {
      blockers.add(*member, in_the_way(job, *member, open));
      continue;
    }
    const auto choice = choose_job(store, moment.fleet, *member, free, rules);
    const std::string over = quotas.why_not(job, gpus_of(job, moment.fleet, *member, free));
    if (choice && choice->job.id == job.id)
      explanation.worker_ids.push_back(member->worker.id);
    else if (!over.empty())
      quota = over;
    else
      behind_at = member->worker.name;
  }
  if (fitting == 0 && most_time_left_ms)
    return say(WaitReason::kNothingFits,
               "no worker of pool " + job.pool + " has enough time left: the job " +
                   time_of(job, moment.fleet) + ", and at most " + minutes(*most_time_left_ms) +
                   " are left; lower max_runtime, or set checkpoint.interval if the job resumes");
  if (fitting == 0) return say(WaitReason::kNothingFits, unfit(job, members));
  if (!explanation.worker_ids.empty())
    return say(WaitReason::kNow, "it is the next; a worker with a free slot gets it");
  if (!behind_at.empty())
    return say(WaitReason::kBehind,
               "worker '" + behind_at + "' has a free slot that fits, and another job comes first");
  if (!quota.empty()) return say(WaitReason::kQuota, quota);
  std::move(blockers).write(explanation);
}

/// Explains a job that waits for others.
void explain_wait(Store& store, const Scope& scope, Explanation& explanation) {
  explanation.reason = WaitReason::kDependency;
  explanation.blocking_jobs = explanation.job.unmet;
  explanation.message = "it waits until " + std::to_string(explanation.job.unmet) +
                        (explanation.job.unmet == 1 ? " other job has" : " other jobs have") +
                        " ended";
  for (const JobRow& other : store.awaited_by(explanation.job.id, kMostBlocking))
    if (is_visible(scope, other)) explanation.blocking.push_back(other.uid);
}

/// Says that a job has ended, and why it was cancelled.
std::string end_of(Store& store, const JobRow& job) {
  const std::string why = job.state == JobState::kCancelled ? store.cancel_reason(job.id) : "";
  return why.empty() ? "it has ended" : "it was cancelled: " + why;
}

}  // namespace

bool is_visible(const Scope& scope, const JobRow& job) {
  return scope.is_everything || job.owner_id == scope.principal_id ||
         (job.visibility == Visibility::kTenant && job.tenant == scope.tenant);
}

Explanation explain(Store& store, const Scope& scope, const JobRow& job, const Moment& moment) {
  Explanation explanation{.job = job, .reason = WaitReason::kNotWaiting, .message = {}};
  if (job.state == JobState::kHeld) {
    explanation.reason = WaitReason::kHeld;
    explanation.message = "it is held; quasi release lets it wait for a worker again";
  } else if (job.state == JobState::kBlocked && job.unmet > 0) {
    explain_wait(store, scope, explanation);
  } else if (job.state == JobState::kBlocked && job.set_waits) {
    explanation.reason = WaitReason::kSetLimit;
    explanation.message = "its set runs at most " +
                          std::to_string(store.job_set(*job.set_id)->max_concurrent) +
                          " jobs at a time";
  } else if (job.state == JobState::kBlocked) {
    explanation.reason = WaitReason::kEqualJob;
    explanation.message = "it waits for an equal job and ends with its result";
  } else if (job.state != JobState::kQueued) {
    explanation.message = is_final(job.state) ? end_of(store, job) : "a worker has it";
  } else if (job.ready) {
    explain_ready(store, scope, moment, explanation);
  } else {
    const bool backs_off = job.grants > 0;
    explanation.reason = backs_off ? WaitReason::kBackOff : WaitReason::kNotBefore;
    explanation.message =
        backs_off ? "it waits after its last attempt" : "its submitter set an earliest time";
    explanation.earliest_ms = backs_off && moment.back_off_left_ms
                                  ? moment.rules.now.wall_ms + *moment.back_off_left_ms
                                  : job.not_before_ms;
  }
  return explanation;
}

}  // namespace quasi::server
