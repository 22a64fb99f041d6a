#include "server/queue/queue_core.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "server/queue/refused.hpp"
#include "server/queue/schedulable.hpp"
#include "server/queue/turns/change_checks.hpp"

namespace quasi::server {
namespace {

/// Prefix of the line of a stored answer that names a job with a taken result.
constexpr char kTaken = '=';

Submitted stored_answer(const std::string& text) {
  Submitted submitted{.uids = {}, .reused = {}, .replayed = true};
  for (std::string& line : lines_of(text)) {
    if (!line.empty() && line.front() == kTaken) {
      line.erase(0, 1);
      submitted.reused.push_back(line);
    }
    submitted.uids.push_back(std::move(line));
  }
  return submitted;
}

void require_inputs(Store& store, const Scope& scope, const std::vector<NewJob>& jobs) {
  std::vector<Refused::Precondition> missing;
  std::map<std::string, std::int64_t> sizes;
  for (const NewJob& job : jobs) {
    for (const JobInput& input : job.inputs) {
      auto [known, first] = sizes.try_emplace(input.digest, -1);
      if (first) known->second = store.blob_size(scope, input.digest).value_or(-1);
      if (known->second == input.size_bytes) continue;
      if (!first && known->second < 0) continue;  // already reported
      missing.push_back({.type = "INPUTS_MISSING",
                         .subject = input.digest,
                         .description = known->second < 0 ? "not in the blob store; upload it first"
                                                          : "has " + std::to_string(known->second) +
                                                                " bytes, not " +
                                                                std::to_string(input.size_bytes)});
    }
  }
  if (missing.empty()) return;
  Refused refused(Refusal::kFailedPrecondition, "INPUTS_MISSING",
                  std::to_string(missing.size()) + " input(s) are not in the blob store");
  refused.preconditions = std::move(missing);
  throw refused;
}

/// @throws Refused UNSCHEDULABLE for jobs that no known device can ever hold.
void require_schedulable(Store& store, const std::vector<NewJob>& jobs) {
  std::optional<std::vector<WorkerRow>> workers;
  std::vector<Refused::Precondition> hopeless;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const JobRow& row = jobs[i].row;
    if (row.memory_bytes == 0 && row.gpus <= 1) continue;  // fits every device that runs its kind
    if (row.taken_from) continue;
    if (!workers) workers = store.workers();
    const Prospect prospect = prospect_of(row, *workers);
    if (prospect.chance == Chance::kTooLarge)
      hopeless.push_back(
          {.type = "UNSCHEDULABLE",
           .subject = "jobs[" + std::to_string(i) + "].spec.resources." + prospect.field,
           .description = prospect.why});
  }
  if (hopeless.empty()) return;
  Refused refused(
      Refusal::kFailedPrecondition, "UNSCHEDULABLE",
      hopeless.front().subject + ": " + hopeless.front().description +
          (hopeless.size() > 1 ? " (and " + std::to_string(hopeless.size() - 1) + " more)" : ""));
  refused.preconditions = std::move(hopeless);
  throw refused;
}

}  // namespace

QueueCore::QueueCore(Store& store, LogFiles& logs, RandomSource& random,
                     const QueueOptions& options)
    : store_(store),
      logs_(logs),
      random_(random),
      options_(options),
      shares_(options.fair_share_half_life_ms) {}

void QueueCore::recover(Now now) {
  leases_.clear();
  attempt_of_fence_.clear();
  for (const AttemptRow& attempt : store_.open_attempts()) {
    leases_.set(attempt.fence,
                now.monotonic_ms + options_.lease_ttl_ms + options_.restart_grace_ms);
    attempt_of_fence_[attempt.fence] = attempt.uid;
  }
  retry_at_ms_.clear();
  for (const JobRow& job : store_.delayed_retries())
    retry_at_ms_[job.id] =
        now.monotonic_ms +
        std::clamp<std::int64_t>(job.not_before_ms - now.wall_ms, 0, kMostBackOffMs);
  shares_.recover(store_, now);
  became_ready_ = true;
}

bool QueueCore::take_ready_flag() { return std::exchange(became_ready_, false); }

Submitted QueueCore::apply(const SubmitJobs& command, Now now) {
  const std::string request = request_key(command.scope, command.request_id);
  if (const auto answer = replay(store_, request, "SubmitJobs", command.body_sha256))
    return stored_answer(*answer);
  require_inputs(store_, command.scope, command.jobs);
  std::vector<NewJob> jobs = command.jobs;
  for (NewJob& job : jobs) {
    job.row.owner_id = command.scope.principal_id;
    job.row.tenant = command.scope.tenant;
    job.row.taken_from = result_for(store_, options_.results, job.row);
  }
  require_schedulable(store_, jobs);
  require_quota(store_, command.scope, jobs, options_.quotas, options_.default_max_runtime_ms);
  Submitted submitted;
  std::vector<std::string> answer;
  for (NewJob& job : jobs) {
    JobRow& row = job.row;
    const bool is_taken = row.taken_from.has_value();
    row.uid = make_id('j', now.wall_ms, random_);
    row.ready = !is_taken && row.not_before_ms <= now.wall_ms;
    row.state = is_taken                              ? JobState::kSucceeded
                : row.ready && an_equal_job_runs(row) ? JobState::kBlocked
                                                      : JobState::kQueued;
    if (is_taken) row.ended_ms = now.wall_ms;
    if (row.max_runtime_ms == 0) row.max_runtime_ms = options_.default_max_runtime_ms;
    row.revision = 1;
    row.job_seq = 1;
    row.created_ms = now.wall_ms;
    row.id = store_.insert_job(job);
    EventRow event{
        .job_id = row.id, .job_seq = 1, .time_ms = now.wall_ms, .to = row.state, .message = {}};
    if (is_taken) event.message = kTookResult;
    if (row.state == JobState::kBlocked) event.message = kWaitsForEqual;
    if (!is_taken && !row.ready) event.not_before_ms = row.not_before_ms;
    store_.append_event(event);
    became_ready_ = became_ready_ || row.state == JobState::kQueued;
    submitted.uids.push_back(row.uid);
    answer.push_back(is_taken ? kTaken + row.uid : row.uid);
    if (!is_taken) continue;
    store_.take_result(row.id, *row.taken_from);
    submitted.reused.push_back(row.uid);
  }
  store_.count_new_jobs(command.scope,
                        static_cast<std::int64_t>(jobs.size() - submitted.reused.size()));
  store_.save_request(
      request,
      {.method = "SubmitJobs", .body_sha256 = command.body_sha256, .response = joined(answer)},
      now.wall_ms + options_.request_ttl_ms);
  return submitted;
}

Cancelled QueueCore::apply(const CancelJobs& command, Now now) {
  const std::string request = request_key(command.scope, command.request_id);
  if (const auto answer = replay(store_, request, "CancelJobs", command.body_sha256)) {
    Cancelled cancelled{.states = {}, .replayed = true};
    for (const std::string& line : lines_of(*answer))
      cancelled.states.push_back(static_cast<JobState>(std::stoi(line)));
    return cancelled;
  }
  Cancelled cancelled;
  std::vector<std::string> answer;
  for (const std::string& uid : command.uids) {
    auto job = store_.find_job(command.scope, uid);
    if (!job) throw Refused(Refusal::kNotFound, "JOB", "there is no job " + uid);
    require_owner(command.scope, *job);
    if (!is_final(job->state) && job->state != JobState::kCancelling) {
      job->cancel_requested_ms = now.wall_ms;
      move(*job, JobEvent::kCancel, {.message = command.reason}, now);
    }
    cancelled.states.push_back(job->state);
    answer.push_back(std::to_string(static_cast<int>(job->state)));
  }
  if (!request.empty())
    store_.save_request(
        request,
        {.method = "CancelJobs", .body_sha256 = command.body_sha256, .response = joined(answer)},
        now.wall_ms + options_.request_ttl_ms);
  return cancelled;
}

Deleted QueueCore::apply(const DeleteJobs& command, Now now) {
  const std::string request = request_key(command.scope, command.request_id);
  if (replay(store_, request, "DeleteJobs", command.body_sha256)) return {.replayed = true};
  const std::set<std::string> uids(command.uids.begin(), command.uids.end());
  for (const std::string& uid : uids) {
    auto job = store_.find_job(command.scope, uid);
    if (!job) throw Refused(Refusal::kNotFound, "JOB", "there is no job " + uid);
    require_owner(command.scope, *job);
    if (!is_final(job->state))
      throw wrong_state(*job, "only jobs that have ended are deleted, so cancel it first");
    // The deletion is the last numbered event of the job (I8). Its state stays (I3).
    ++job->job_seq;
    ++job->revision;
    store_.update_job(*job);
    EventRow event;
    event.job_id = job->id;
    event.job_seq = job->job_seq;
    event.time_ms = now.wall_ms;
    event.from = job->state;
    event.to = job->state;
    event.message = command.reason;
    store_.append_event(event);
    store_.mark_deleted(job->id, now.wall_ms);
  }
  if (!request.empty())
    store_.save_request(
        request, {.method = "DeleteJobs", .body_sha256 = command.body_sha256, .response = {}},
        now.wall_ms + options_.request_ttl_ms);
  return {};
}

void QueueCore::move(JobRow& job, JobEvent event, const Note& note, Now now) {
  const auto next = next_state(job.state, event);
  if (!next)
    throw std::logic_error("job " + job.uid + " cannot move from " +
                           std::string(name_of(job.state)));
  EventRow row{.job_id = job.id,
               .job_seq = job.job_seq + 1,
               .time_ms = now.wall_ms,
               .from = job.state,
               .to = *next,
               .failure = note.failure,
               .message = note.message,
               .reinstated = note.reinstated};
  if (note.attempt != nullptr) {
    row.attempt = note.attempt->number;
    row.attempt_uid = note.attempt->uid;
    row.fence = note.attempt->fence;
    row.worker_id = note.attempt->worker_id;
  }
  if (*next == JobState::kQueued && !job.ready) row.not_before_ms = job.not_before_ms;
  const bool was_with_a_worker = job.state == JobState::kLeased || job.state == JobState::kRunning;
  job.state = *next;
  ++job.job_seq;
  ++job.revision;
  if (is_final(job.state)) job.ended_ms = now.wall_ms;
  store_.update_job(job);
  store_.append_event(row);
  if (job.state == JobState::kQueued && job.ready) became_ready_ = true;
  // A success offers its result first (CompleteAttempt).
  if (was_with_a_worker && (job.state >= JobState::kFailed || job.state == JobState::kQueued ||
                            job.state == JobState::kCancelling))
    settle_equals(job, now);
}

void QueueCore::set_not_before(JobRow& job, std::int64_t delay_ms, Now now) {
  job.ready = delay_ms <= 0;
  if (job.ready) return;
  job.not_before_ms = now.wall_ms + delay_ms;
  retry_at_ms_[job.id] = now.monotonic_ms + delay_ms;
}

void QueueCore::end_back_offs(Now now) {
  for (auto at = retry_at_ms_.begin(); at != retry_at_ms_.end();) {
    if (at->second > now.monotonic_ms) {
      ++at;
      continue;
    }
    auto job = store_.job(at->first);
    const bool waits = job && (job->state == JobState::kQueued || job->state == JobState::kHeld);
    if (waits && !job->ready && job->grants > 0) {
      job->ready = true;
      store_.update_job(*job);
      became_ready_ = became_ready_ || job->state == JobState::kQueued;
    }
    at = retry_at_ms_.erase(at);
  }
}

bool QueueCore::tick(Now now) {
  constexpr std::size_t kExpiriesPerTick = 256;
  for (const std::int64_t fence : leases_.expired(now.monotonic_ms, kExpiriesPerTick)) {
    const auto attempt = store_.find_attempt(attempt_of_fence_[fence]);
    if (attempt && attempt->outcome == AttemptOutcome::kOpen) {
      Held held{.job = *store_.job(attempt->job_id), .attempt = *attempt};
      if (held.job.state == JobState::kCancelling) {
        end_cancelled(held, AttemptOutcome::kExpired, now);
      } else {
        end_failed(held, AttemptOutcome::kExpired,
                   {.reason = FailureReason::kWorkerLost,
                    .message = "worker " + attempt->worker_id + " was silent for " +
                               std::to_string(options_.lease_ttl_ms / 1000) + " s"},
                   now);
      }
    }
    leases_.erase(fence);
    attempt_of_fence_.erase(fence);
  }
  end_back_offs(now);
  refresh_shares(now);
  if (store_.promote_delayed(now.wall_ms) > 0) became_ready_ = true;
  return became_ready_;
}

std::vector<WorkerStatus> QueueCore::fleet(Now now) const {
  std::vector<WorkerStatus> workers;
  for (const auto& [id, member] : fleet_.members()) {
    WorkerStatus status{.worker = member.worker,
                        .online = now.monotonic_ms - member.last_seen_ms <= options_.lease_ttl_ms,
                        .draining = member.draining,
                        .devices = {}};
    status.worker.last_seen_ms = now.wall_ms - (now.monotonic_ms - member.last_seen_ms);
    for (const auto& [device_id, device] : member.devices) status.devices.push_back(device);
    workers.push_back(std::move(status));
  }
  return workers;
}

}  // namespace quasi::server
