// Rules on turns: holding, releasing and priorities, accounts, and explanations.

#include <algorithm>

#include "server/queue/queue_core.hpp"
#include "server/queue/turns/change_checks.hpp"

namespace quasi::server {
namespace {

/// Interval of the moments at which running attempts count for their real time.
constexpr std::int64_t kRefreshMs = 5'000;

}  // namespace

TurnsChanged QueueCore::apply(const ChangeTurns& command, Now now) {
  using Act = ChangeTurns::Act;
  const std::string method = command.act == Act::kHold      ? "HoldJobs"
                             : command.act == Act::kRelease ? "ReleaseJobs"
                                                            : "ReprioritiseJobs";
  const std::string request = request_key(command.scope, command.request_id);
  TurnsChanged changed;
  if (const auto answer = replay(store_, request, method, command.body_sha256)) {
    changed.replayed = true;
    for (const std::string& line : lines_of(*answer))
      changed.jobs.push_back({.state = static_cast<JobState>(std::stoi(line)),
                              .priority = std::stoi(line.substr(line.find(' ')))});
    return changed;
  }
  std::vector<std::string> answer;
  for (const std::string& uid : command.uids) {
    auto job = store_.find_job(command.scope, uid);
    if (!job) throw Refused(Refusal::kNotFound, "JOB", "there is no job " + uid);
    require_owner(command.scope, *job);
    if (command.act == Act::kHold) hold(*job, command.reason, now);
    if (command.act == Act::kRelease) release(*job, command.reason, now);
    if (command.act == Act::kReprioritise) reprioritise(*job, command, now);
    changed.jobs.push_back({.state = job->state, .priority = job->priority});
    answer.push_back(std::to_string(static_cast<int>(job->state)) + " " +
                     std::to_string(job->priority));
  }
  if (!request.empty())
    store_.save_request(
        request, {.method = method, .body_sha256 = command.body_sha256, .response = joined(answer)},
        now.wall_ms + options_.request_ttl_ms);
  return changed;
}

void QueueCore::hold(JobRow& job, const std::string& reason, Now now) {
  if (job.state == JobState::kHeld) return;
  if (!next_state(job.state, JobEvent::kHold))
    throw wrong_state(job, "only jobs that wait for a worker are held" +
                               std::string(job.open_attempt ? "; cancel it instead" : ""));
  move(job, JobEvent::kHold, {.message = reason}, now);
}

void QueueCore::release(JobRow& job, const std::string& reason, Now now) {
  if (job.state == JobState::kQueued || job.state == JobState::kBlocked) return;
  if (job.state == JobState::kHeld && job.unmet == 0) job.set_waits = is_full(job.set_id);
  if (job.state == JobState::kHeld && (job.unmet > 0 || job.set_waits))
    return move(job, JobEvent::kUnholdToBlocked, {.message = reason}, now);
  if (!next_state(job.state, JobEvent::kUnholdToQueued))
    throw wrong_state(job, "only jobs that are held are released");
  // A back-off ends on the monotonic clock, also while the job is held (end_back_offs).
  if (job.grants == 0) job.ready = job.not_before_ms <= now.wall_ms;
  move(job, JobEvent::kUnholdToQueued, {.message = reason}, now);
}

void QueueCore::reprioritise(JobRow& job, const ChangeTurns& command, Now now) {
  if (is_final(job.state)) throw wrong_state(job, "only jobs that have not ended have a turn");
  if (command.priority > job.priority && !command.may_raise)
    throw Refused(Refusal::kPermissionDenied, "ROLE_REQUIRED",
                  "priority: is " + std::to_string(command.priority) + ", and job " + job.uid +
                      " has " + std::to_string(job.priority) +
                      ", the limit of your role; choose a lower value, or ask an operator to "
                      "raise it");
  if (command.priority == job.priority) return;
  store_.append_event({.job_id = job.id,
                       .time_ms = now.wall_ms,
                       .type = EventType::kPriority,
                       .to = job.state,
                       .old_priority = job.priority,
                       .new_priority = command.priority});
  job.priority = command.priority;
  ++job.revision;
  store_.update_job(job);
  if (job.state != JobState::kQueued && job.state != JobState::kBlocked) return;
  settle_equals(job, 0, now);
  job = *store_.job(job.id);
}

void QueueCore::apply(const SetAllowance& command, Now) {
  store_.save_allowance(command.account, command.allowance);
  shares_.forget_shares();
  became_ready_ = true;
}

AccountView QueueCore::account(const Account& account, Now now) {
  AccountView view{.stored = store_.allowance_of(account),
                   .in_effect = allowance_in_effect(store_, account, options_.quotas),
                   .used = store_.jobs_of_account(account)};
  view.used.gpu_ms = store_.gpu_ms_of_account(account, first_usage_day(now.wall_ms));
  view.used.stored_bytes = store_.bytes_of_account(account);
  return view;
}

void QueueCore::require_room_for_bytes(const Scope& scope, std::int64_t bytes) {
  server::require_room_for_bytes(store_, scope, bytes, options_.quotas);
}

TurnRules QueueCore::turn_rules(Now now) {
  return {.quotas = options_.quotas,
          .shares = shares_,
          .ageing = ageing_,
          .now = now,
          .lease_ttl_ms = options_.lease_ttl_ms};
}

void QueueCore::refresh_shares(Now now) {
  if (now.monotonic_ms - shares_refreshed_ms_ < kRefreshMs) return;
  shares_refreshed_ms_ = now.monotonic_ms;
  shares_.refresh(now);
}

Explanation QueueCore::explain(const Scope& scope, const std::string& uid, Now now) {
  const auto job = store_.find_job(scope, uid);
  if (!job) throw Refused(Refusal::kNotFound, "JOB", "there is no job " + uid);
  Moment moment{.fleet = fleet_, .rules = turn_rules(now)};
  if (const auto end = retry_at_ms_.find(job->id); end != retry_at_ms_.end())
    moment.back_off_left_ms = std::max<std::int64_t>(end->second - now.monotonic_ms, 0);
  Explanation explanation = server::explain(store_, scope, *job, moment);
  explain_equals(scope, explanation);
  explanation.needed_bytes = fleet_.needed_bytes(*job);
  const Corrections& corrections = fleet_.corrections();
  explanation.memory_correction =
      job->gpus == 0 ? 1.0 : corrections.factor(Quantity::kGpuMemory, job->kind, job->pool);
  explanation.time_correction = corrections.factor(Quantity::kTime, job->kind, job->pool);
  return explanation;
}

}  // namespace quasi::server
