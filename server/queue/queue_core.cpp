#include "server/queue/queue_core.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>

#include "server/queue/refused.hpp"
#include "server/queue/turns/change_checks.hpp"

namespace quasi::server {

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
  unsettled_.clear();
  for (const RowId job : store_.blocked_groups()) unsettled_.push_back({.job = job});
  retry_at_ms_.clear();
  for (const JobRow& job : store_.delayed_retries()) {
    // The wall clock may have stepped back. A job never waits longer than its longest delay.
    const std::int64_t longest_ms = std::max(
        options_.requeue_delay_ms, back_off_ms(options_.retry_back_off_ms, job.attempts, 1.0));
    retry_at_ms_[job.id] =
        now.monotonic_ms + std::clamp<std::int64_t>(job.not_before_ms - now.wall_ms, 0, longest_ms);
  }
  shares_.recover(store_, now);
  fleet_.set_orders(store_.service_orders());
  fleet_.set_ratios(store_.estimate_ratios());
  became_ready_ = true;
}

bool QueueCore::take_ready_flag() { return std::exchange(became_ready_, false); }

Cancelled QueueCore::apply(const CancelJobs& command, Now now) {
  const std::string request = request_key(command.scope, command.request_id);
  if (const auto answer = replay(store_, request, "CancelJobs", command.body_sha256)) {
    Cancelled cancelled{.uids = {}, .states = {}, .replayed = true};
    for (const std::string& line : lines_of(*answer)) {
      cancelled.states.push_back(static_cast<JobState>(std::stoi(line)));
      cancelled.uids.push_back(line.substr(std::min(line.find(' '), line.size() - 1) + 1));
    }
    return cancelled;
  }
  const std::vector<RowId> ids = jobs_to_cancel(command);
  // A job that waits for another one was submitted later. It is cancelled first, so that it is
  // CANCELLED and not FAILED.
  for (const RowId id : std::set<RowId, std::greater<>>(ids.begin(), ids.end())) {
    auto job = store_.job(id);
    if (is_final(job->state) || job->state == JobState::kCancelling) continue;
    job->cancel_requested_ms = now.wall_ms;
    move(*job, JobEvent::kCancel, {.message = command.reason}, now);
  }
  Cancelled cancelled;
  std::vector<std::string> answer;
  for (const RowId id : ids) {
    const JobRow job = *store_.job(id);
    cancelled.states.push_back(job.state);
    cancelled.uids.push_back(job.uid);
    answer.push_back(std::to_string(static_cast<int>(job.state)) + " " + job.uid);
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
  const bool others_waited = job.state == JobState::kQueued || job.state == JobState::kLeased ||
                             job.state == JobState::kRunning;
  change_state(job, event, note, now);
  if (is_final(job.state) || job.state == JobState::kHeld) settle(job, now);
  // A success keeps its result first (CompleteAttempt).
  if (others_waited && job.state != JobState::kRunning && job.state != JobState::kSucceeded)
    settle_equals(job, 0, now);
}

void QueueCore::change_state(JobRow& job, JobEvent event, const Note& note, Now now) {
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
  job.state = *next;
  ++job.job_seq;
  ++job.revision;
  if (is_final(job.state)) job.ended_ms = now.wall_ms;
  store_.update_job(job);
  store_.append_event(row);
  if (job.state == JobState::kQueued && job.ready) became_ready_ = true;
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
  settle_further_equals(now);
  refresh_shares(now);
  if (store_.promote_delayed(now.wall_ms) > 0) became_ready_ = true;
  return became_ready_;
}

std::vector<WorkerStatus> QueueCore::fleet(Now now) const {
  std::vector<WorkerStatus> workers;
  for (const auto& [id, member] : fleet_.members()) {
    WorkerStatus status{.worker = member.worker,
                        .online = now.monotonic_ms - member.last_seen_ms <= options_.lease_ttl_ms,
                        .draining = !member.takes_jobs(),
                        .closed = member.closed,
                        .devices = {}};
    status.worker.last_seen_ms = now.wall_ms - (now.monotonic_ms - member.last_seen_ms);
    for (const auto& [device_id, device] : member.devices) {
      DeviceStatus& shown = status.devices.emplace_back(device);
      if (device.closed.empty() || device.state != DeviceState::kReady) continue;
      shown.state = DeviceState::kCordoned;
      shown.state_reason = device.closed;
    }
    workers.push_back(std::move(status));
  }
  return workers;
}

}  // namespace quasi::server
