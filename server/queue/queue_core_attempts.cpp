// Rules on attempts: the right to act on one, grants, and the ways in which attempts end.

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "server/queue/queue_core.hpp"
#include "server/queue/refused.hpp"

namespace quasi::server {
namespace {

/// Highest fence that a worker may report. A store never grants so many, and higher fences remain
/// available.
constexpr std::int64_t kMostFence = std::int64_t{1} << 53;
/// Jobs that take a result at their turn while one request waits for a grant.
constexpr std::size_t kMostPassed = 64;

}  // namespace

AttemptRow QueueCore::find_attempt_of(const AttemptKey& key) {
  auto attempt = store_.find_attempt(key.attempt_uid);
  if (!attempt || attempt->fence != key.fence || attempt->worker_id != key.worker_id)
    throw_fenced(key);
  return std::move(*attempt);
}

void QueueCore::throw_fenced(const AttemptKey& key) {
  Refused refused(Refusal::kAborted, "FENCED",
                  "attempt " + key.attempt_uid + " with fence " + std::to_string(key.fence) +
                      " does not hold its job any more; stop the child and publish nothing");
  // A fence above the newest one means that the store was restored from an old copy.
  if (key.fence > store_.newest_fence()) refused.with("future", "true");
  throw refused;
}

std::optional<QueueCore::Held> QueueCore::find_current(const AttemptKey& key, Now now) {
  auto attempt = store_.find_attempt(key.attempt_uid);
  if (!attempt || attempt->fence != key.fence || attempt->worker_id != key.worker_id)
    return std::nullopt;
  auto job = store_.job(attempt->job_id);
  if (!job || job->fence != key.fence) return std::nullopt;
  Held held{.job = std::move(*job), .attempt = std::move(*attempt)};
  if (held.attempt.outcome == AttemptOutcome::kOpen) return held;
  const bool waits = held.job.state == JobState::kQueued || held.job.state == JobState::kHeld ||
                     held.job.state == JobState::kBlocked;
  // A job that waits for an equal one keeps its place in its set.
  const bool has_place = held.job.state == JobState::kQueued ||
                         (held.job.state == JobState::kBlocked && !held.job.set_waits) ||
                         !is_full(held.job.set_id);
  if (held.attempt.outcome == AttemptOutcome::kExpired && waits && has_place &&
      has_room_for(held.attempt) &&
      RunningQuotas(store_, options_.quotas, now).why_not(held.job, held.attempt.gpus).empty()) {
    reinstate(held, now);
    return held;
  }
  return std::nullopt;
}

QueueCore::Held QueueCore::require_current(const AttemptKey& key, Now now) {
  auto held = find_current(key, now);
  if (!held) throw_fenced(key);
  return std::move(*held);
}

bool QueueCore::has_room_for(const AttemptRow& attempt) {
  std::map<std::string, std::int32_t> room;
  if (const Fleet::Member* member = fleet_.find(attempt.worker_id)) {
    for (const auto& [id, status] : member->devices) room[id] = status.device.slots;
  } else {
    // A report may arrive after a restart of the server and before its worker registers again.
    for (const WorkerRow& worker : store_.workers())
      if (worker.id == attempt.worker_id)
        for (const DeviceRow& device : worker.devices) room[device.id] = device.slots;
  }
  for (const AttemptRow& open : store_.open_attempts_of(attempt.worker_id))
    for (const std::string& id : open.device_ids) --room[id];
  return std::all_of(attempt.device_ids.begin(), attempt.device_ids.end(),
                     [&](const std::string& id) { return room[id] > 0; });
}

void QueueCore::reinstate(Held& held, Now now) {
  JobRow& job = held.job;
  AttemptRow& attempt = held.attempt;
  attempt.outcome = AttemptOutcome::kOpen;
  attempt.ended_ms = 0;
  attempt.failure = {};
  if (!attempt.counted) {
    attempt.counted = true;
    ++job.attempts;
  }
  store_.update_attempt(attempt);
  job.open_attempt = attempt.id;
  job.ready = true;
  job.set_waits = false;
  job.failure = {};
  move(job, attempt.started_ms > 0 ? JobEvent::kReinstateRunning : JobEvent::kReinstateLeased,
       {.attempt = &attempt, .message = "the worker is back", .reinstated = true}, now);
  leases_.set(attempt.fence, now.monotonic_ms + options_.lease_ttl_ms);
  attempt_of_fence_[attempt.fence] = attempt.uid;
  shares_.begin(job, attempt.fence, now);
}

void QueueCore::close(AttemptRow& attempt, AttemptOutcome outcome, JobState end_state, Now now) {
  attempt.outcome = outcome;
  attempt.end_state = end_state;
  attempt.ended_ms = now.wall_ms;
  store_.update_attempt(attempt);
  leases_.erase(attempt.fence);
  attempt_of_fence_.erase(attempt.fence);
  told_to_checkpoint_.erase(attempt.fence);
  shares_.end(attempt.fence, now);
}

void QueueCore::give_back_count(Held& held) {
  if (!held.attempt.counted) return;
  held.attempt.counted = false;
  --held.job.attempts;
}

JobState QueueCore::end_failed(Held& held, AttemptOutcome outcome, const FailureInfo& failure,
                               Now now) {
  JobRow& job = held.job;
  AttemptRow& attempt = held.attempt;
  attempt.failure = failure;
  // An attempt that an operator orders to leave costs its job nothing. At its time limit it would
  // have failed without the order too.
  const bool spared = attempt.new_checkpoint || (failure.reason != FailureReason::kTimeLimit &&
                                                 !order_to_leave(job, attempt, now).empty());
  if (failure.reason == FailureReason::kChildCrashed && !spared) ++job.crashes;
  if (failure.reason == FailureReason::kGpuOom) ++job.gpu_ooms;
  if (failure.reason == FailureReason::kHostOom) ++job.host_ooms;
  RetryDecision decision = decide_retry({.reason = failure.reason,
                                         .new_checkpoint = spared,
                                         .attempts = job.attempts,
                                         .max_attempts = job.max_attempts,
                                         .grants = job.grants,
                                         .crashes = job.crashes,
                                         .gpu_ooms = job.gpu_ooms,
                                         .host_ooms = job.host_ooms});
  job.failure = failure;
  if (failure.reason == FailureReason::kGpuOom && job.memory_bytes > 0)
    learn(Quantity::kGpuMemory, job, kRatioOfOom);
  if (failure.reason == FailureReason::kTimeLimit) learn(Quantity::kTime, job, 1.0);
  if (decision.retry && failure.reason == FailureReason::kGpuOom) {
    // The new requirement is 1.5 times the old one, and more than the memory of the device that was
    // too small.
    std::int64_t needed = job.memory_bytes + job.memory_bytes / 2;
    std::int64_t largest = 0;
    for (const auto& [worker_id, member] : fleet_.members()) {
      for (const auto& [device_id, status] : member.devices) {
        if (status.device.backend != Backend::kCuda || member.worker.pool != job.pool) continue;
        largest = std::max(largest, status.device.memory_bytes);
        const auto& used = attempt.device_ids;
        if (worker_id == attempt.worker_id &&
            std::find(used.begin(), used.end(), device_id) != used.end())
          needed = std::max(needed, status.device.memory_bytes + 1);
      }
    }
    if (needed <= largest) {
      job.memory_bytes = needed;
    } else {
      decision = {.retry = false, .counted = decision.counted, .delay = RetryDelay::kNone};
      job.failure.message += " (no device of pool " + job.pool + " has more memory)";
    }
  }
  if (failure.reason == FailureReason::kGpuFault && !attempt.device_ids.empty())
    job.avoid_device = attempt.worker_id + "/" + attempt.device_ids.front();
  if (!decision.counted) give_back_count(held);
  const JobState end_state = decision.retry ? JobState::kQueued : JobState::kFailed;
  close(attempt, outcome, end_state, now);
  job.open_attempt.reset();
  if (decision.retry) {
    std::int64_t delay_ms = 0;
    if (decision.delay == RetryDelay::kRequeueDelay) delay_ms = options_.requeue_delay_ms;
    if (decision.delay == RetryDelay::kBackOff)
      delay_ms = back_off_ms(options_.retry_back_off_ms, job.attempts, random_.uniform());
    set_not_before(job, delay_ms, now);
    move(job, JobEvent::kRequeue, {.attempt = &attempt, .failure = job.failure}, now);
  } else {
    move(job, JobEvent::kFail, {.attempt = &attempt, .failure = job.failure}, now);
  }
  return job.state;
}

JobState QueueCore::end_released(Held& held, ReleaseReason reason, const std::string& message,
                                 Now now) {
  JobRow& job = held.job;
  AttemptRow& attempt = held.attempt;
  const std::string order = order_to_leave(job, attempt, now);
  const std::string& why = order.empty() ? message : order;
  attempt.release_message = why;
  give_back_count(held);
  const bool again = may_be_granted_again(job.grants, job.max_attempts);
  close(attempt, AttemptOutcome::kReleased, again ? JobState::kQueued : JobState::kFailed, now);
  job.open_attempt.reset();
  if (!again) {
    job.failure = {.reason = FailureReason::kWorkerLost,
                   .message = "workers released it too often: granted " +
                              std::to_string(job.grants) + " times; last: " + why};
    move(job, JobEvent::kFail, {.attempt = &attempt, .message = why, .failure = job.failure}, now);
    return job.state;
  }
  // A preempted job lets the others start first.
  const bool wait = reason == ReleaseReason::kBusyForeign ||
                    reason == ReleaseReason::kStageTimeout || !attempt.preempted.empty();
  set_not_before(job, wait ? options_.requeue_delay_ms : 0, now);
  move(job, JobEvent::kRequeue, {.attempt = &attempt, .message = why}, now);
  return job.state;
}

JobState QueueCore::end_cancelled(Held& held, AttemptOutcome outcome, Now now) {
  close(held.attempt, outcome, JobState::kCancelled, now);
  held.job.open_attempt.reset();
  move(held.job, JobEvent::kStopped, {.attempt = &held.attempt}, now);
  return held.job.state;
}

Registered QueueCore::apply(const RegisterWorker& command, Now now) {
  const WorkerRow& worker = command.worker;
  store_.save_worker(worker);
  for (AttemptRow& attempt : store_.open_attempts_of(worker.id)) {
    if (attempt.incarnation == worker.incarnation) continue;
    const bool salvaged =
        std::any_of(command.salvage.begin(), command.salvage.end(), [&](const AttemptKey& key) {
          return key.attempt_uid == attempt.uid && key.fence == attempt.fence;
        });
    if (salvaged) continue;
    Held held{.job = *store_.job(attempt.job_id), .attempt = attempt};
    if (held.job.state == JobState::kCancelling)
      end_cancelled(held, AttemptOutcome::kReleased, now);
    else
      end_released(held, ReleaseReason::kRestart, "the worker was restarted", now);
  }
  Registered registered;
  for (const AttemptKey& key : command.salvage) {
    // A fence above the newest one means that the store was restored from an old copy. If the store
    // granted this fence again, it would name two attempts at this worker, and the end of the old
    // one would end the new one. A correct worker never reports a fence above the bound.
    if (key.fence > store_.newest_fence() && key.fence < kMostFence) store_.raise_fence(key.fence);
    auto held = find_current(key, now);
    if (!held) {
      registered.salvage.push_back(Directive::kFenced);
      continue;
    }
    if (held->attempt.incarnation != worker.incarnation) {
      held->attempt.incarnation = worker.incarnation;
      store_.update_attempt(held->attempt);
    }
    leases_.set(key.fence, now.monotonic_ms + options_.lease_ttl_ms);
    registered.salvage.push_back(held->job.state == JobState::kCancelling ? Directive::kCancel
                                                                          : Directive::kContinue);
  }
  fleet_.put(command, now.monotonic_ms);
  return registered;
}

Grant QueueCore::existing_grant(const AttemptRow& attempt) {
  Grant grant;
  grant.job = *store_.job(attempt.job_id);
  grant.attempt = attempt;
  grant.spec = store_.spec_of(attempt.job_id);
  grant.made_inputs = store_.made_inputs_of(attempt.job_id);
  if (grant.job.resume) grant.checkpoint = store_.newest_checkpoint(attempt.job_id);
  return grant;
}

std::optional<Grant> QueueCore::grant_one(const AcquireLeases& command,
                                          std::vector<UsableSlot>& slots, Now now) {
  const Fleet::Member& member = fleet_.require(command.worker_id, command.incarnation);
  TurnRules rules = turn_rules(now);
  rules.time_left_ms = command.time_left_ms;
  auto choice = choose_job(store_, fleet_, member, slots, rules);
  for (std::size_t passed = 0; choice && needs_no_run(choice->job, now);) {
    if (++passed == kMostPassed) {
      became_ready_ = true;  // The worker asks again.
      return std::nullopt;
    }
    choice = choose_job(store_, fleet_, member, slots, rules);
  }
  if (!choice) return std::nullopt;
  JobRow& job = choice->job;
  if (choice->is_aged) ageing_.granted(job.pool, job.tenant, now);
  ++job.attempts;
  ++job.grants;
  job.fence = store_.next_fence();
  AttemptRow attempt{.uid = make_id('a', now.wall_ms, random_),
                     .job_id = job.id,
                     .number = job.grants,
                     .fence = job.fence,
                     .worker_id = command.worker_id,
                     .incarnation = command.incarnation,
                     .acquire_id = command.acquire_id,
                     .granted_ms = now.wall_ms};
  for (const std::size_t index : choice->slots) {
    attempt.device_ids.push_back(slots[index].device_id);
    if (slots[index].backend == Backend::kCuda) ++attempt.gpus;
  }
  if (attempt.gpus > 0) attempt.reserved_bytes = fleet_.needed_bytes(job);
  attempt.id = store_.insert_attempt(attempt);
  job.open_attempt = attempt.id;
  move(job, JobEvent::kGrant, {.attempt = &attempt}, now);
  for (auto index = choice->slots.rbegin(); index != choice->slots.rend(); ++index)
    slots.erase(slots.begin() + static_cast<std::ptrdiff_t>(*index));
  reserve(slots, attempt);
  leases_.set(job.fence, now.monotonic_ms + options_.lease_ttl_ms);
  attempt_of_fence_[job.fence] = attempt.uid;
  shares_.begin(job, job.fence, now);
  return existing_grant(attempt);
}

Acquired QueueCore::apply(const AcquireLeases& command, Now now) {
  Fleet::Member& member = fleet_.require(command.worker_id, command.incarnation);
  Acquired acquired;
  for (const AttemptRow& attempt : store_.attempts_of_acquire(command.acquire_id)) {
    if (attempt.outcome != AttemptOutcome::kOpen || attempt.worker_id != command.worker_id)
      continue;
    acquired.grants.push_back(existing_grant(attempt));
    leases_.set(attempt.fence, now.monotonic_ms + options_.lease_ttl_ms);
  }
  member.last_seen_ms = now.monotonic_ms;
  member.ends_ms.reset();
  if (command.time_left_ms) member.ends_ms = now.monotonic_ms + *command.time_left_ms;
  if (!acquired.grants.empty() || !member.takes_jobs()) return acquired;
  std::vector<UsableSlot> slots =
      usable_slots(member, command.slots, store_.open_attempts_of(command.worker_id));
  while (!slots.empty()) {
    auto grant = grant_one(command, slots, now);
    if (!grant) break;
    acquired.grants.push_back(std::move(*grant));
  }
  return acquired;
}

}  // namespace quasi::server
