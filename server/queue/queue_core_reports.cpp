// Rules on reports of workers about their attempts, and the effect of a report on its job.

#include <algorithm>
#include <utility>

#include "proto/wire/limits.hpp"
#include "server/queue/queue_core.hpp"
#include "server/queue/refused.hpp"
#include "server/queue/turns/change_checks.hpp"

namespace quasi::server {
namespace {

constexpr std::string_view kLogCut = "\n[the log reached its limit and is cut here]\n";
constexpr std::int64_t kDetailIntervalMs =
    1'000;  ///< at most one progress and one log event a second for a job

}  // namespace

bool QueueCore::detail_due(RowId job, EventType type, Now now) {
  const auto [entry, first] = last_detail_ms_.try_emplace({job, type}, now.monotonic_ms);
  if (first) {
    // Entries of ended jobs are useless. Entries that have been silent for a minute are dropped.
    if (last_detail_ms_.size() > 4'096)
      std::erase_if(last_detail_ms_,
                    [&](const auto& item) { return now.monotonic_ms - item.second > 60'000; });
    return true;
  }
  if (now.monotonic_ms - entry->second < kDetailIntervalMs) return false;
  entry->second = now.monotonic_ms;
  return true;
}

EventRow QueueCore::detail(const Held& held, EventType type, Now now) const {
  return {.job_id = held.job.id,
          .time_ms = now.wall_ms,
          .type = type,
          .to = held.job.state,
          .attempt = held.attempt.number,
          .attempt_uid = held.attempt.uid,
          .fence = held.attempt.fence};
}

HeartbeatAnswer QueueCore::apply(const Heartbeat& command, Now now) {
  Fleet::Member& member = fleet_.require(command.worker_id, command.incarnation);
  HeartbeatAnswer answer;
  for (const AttemptProgress& report : command.attempts) {
    auto held = find_current(
        {.worker_id = command.worker_id, .attempt_uid = report.attempt_uid, .fence = report.fence},
        now);
    if (!held) {
      answer.directives.push_back(Directive::kFenced);
      continue;
    }
    if (!report.progress.empty() && detail_due(held->job.id, EventType::kProgress, now)) {
      EventRow event = detail(*held, EventType::kProgress, now);
      event.progress = report.progress;
      store_.append_event(event);
      store_.save_progress(held->job.id, report.progress, now.wall_ms);
    }
    note_memory(*held, report.gpu_bytes);
    leases_.set(report.fence, now.monotonic_ms + options_.lease_ttl_ms);
    answer.directives.push_back(directive_for(*held, now));
  }
  fleet_.update(member, command.devices);
  member.draining = command.draining;
  member.last_seen_ms = now.monotonic_ms;
  return answer;
}

void QueueCore::apply(const StartAttempt& command, Now now) {
  Held held = require_current(command.key, now);
  if (held.attempt.started_ms > 0) return;
  held.attempt.started_ms = now.wall_ms;
  held.attempt.isolation = command.isolation;
  store_.update_attempt(held.attempt);
  // While a cancel is under way the state stays. The next heartbeat tells the worker to stop.
  if (held.job.state != JobState::kLeased) return;
  if (held.job.started_ms == 0) held.job.started_ms = now.wall_ms;
  move(held.job, JobEvent::kStart, {.attempt = &held.attempt}, now);
}

std::string QueueCore::read_log(const AttemptRow& attempt, std::int64_t offset, std::int64_t size) {
  std::string bytes;
  while (static_cast<std::int64_t>(bytes.size()) < size) {
    const std::int64_t at = offset + static_cast<std::int64_t>(bytes.size());
    const std::int64_t left = size - static_cast<std::int64_t>(bytes.size());
    std::string part = store_.log_tail(attempt.id, at, left);
    if (part.empty())
      part = logs_.read(attempt.uid, at, std::min(left, store_.folded_log_bytes(attempt.id) - at));
    if (part.empty()) break;
    bytes += part;
  }
  return bytes;
}

LogAppended QueueCore::apply(const AppendLog& command, Now now) {
  Held held = require_current(command.key, now);
  AttemptRow& attempt = held.attempt;
  if (attempt.log_full) return {.length = attempt.log_bytes, .full = true};
  const auto mismatch = [&](const std::string& why) {
    return Refused(Refusal::kAborted, "OFFSET_MISMATCH",
                   "the log of attempt " + attempt.uid + " has " +
                       std::to_string(attempt.log_bytes) + " bytes; " + why)
        .with("length", std::to_string(attempt.log_bytes));
  };
  if (command.offset > attempt.log_bytes)
    throw mismatch("an append at " + std::to_string(command.offset) + " would leave a gap");
  std::string_view data = command.data;
  const auto overlap = static_cast<std::size_t>(std::min<std::int64_t>(
      attempt.log_bytes - command.offset, static_cast<std::int64_t>(data.size())));
  if (overlap > 0) {
    if (read_log(attempt, command.offset, static_cast<std::int64_t>(overlap)) !=
        data.substr(0, overlap))
      throw mismatch("the bytes at " + std::to_string(command.offset) + " differ");
    data.remove_prefix(overlap);
  }
  if (data.empty()) return {.length = attempt.log_bytes, .full = false};
  const auto room = static_cast<std::int64_t>(limits::kLogBytes) - attempt.log_bytes -
                    static_cast<std::int64_t>(kLogCut.size());
  std::string bytes(data.substr(0, static_cast<std::size_t>(std::max<std::int64_t>(room, 0))));
  if (bytes.size() < data.size()) {
    bytes += kLogCut;
    attempt.log_full = true;
  }
  store_.append_log(attempt, bytes);
  attempt.log_bytes += static_cast<std::int64_t>(bytes.size());
  store_.update_attempt(attempt);
  if (detail_due(held.job.id, EventType::kLogGrown, now)) {
    EventRow event = detail(held, EventType::kLogGrown, now);
    event.log_bytes = attempt.log_bytes;
    store_.append_event(event);
  }
  return {.length = attempt.log_bytes, .full = attempt.log_full};
}

void QueueCore::apply(const RecordCheckpoint& command, Now now) {
  Held held = require_current(command.key, now);
  const CheckpointRow& asked = command.checkpoint;
  const auto newest = store_.newest_checkpoint(held.job.id);
  if (newest && newest->sequence >= asked.sequence) {
    if (newest->sequence == asked.sequence && newest->fence == command.key.fence &&
        newest->digest == asked.digest && newest->step == asked.step)
      return;
    throw wrong_state(held.job, "checkpoint " + std::to_string(asked.sequence) +
                                    " does not follow " + std::to_string(newest->sequence))
        .with("sequence", std::to_string(newest->sequence));
  }
  const auto size = store_.blob_size(Scope::everything(), asked.digest);
  if (!size || *size != asked.size_bytes) {
    Refused refused(Refusal::kFailedPrecondition, "INPUTS_MISSING",
                    "the checkpoint is not in the blob store; upload it first");
    refused.preconditions.push_back(
        {.type = "INPUTS_MISSING", .subject = asked.digest, .description = "upload it first"});
    throw refused;
  }
  CheckpointRow row = asked;
  row.fence = command.key.fence;
  row.created_ms = now.wall_ms;
  store_.insert_checkpoint(held.job.id, row);
  store_.drop_old_checkpoints(held.job.id, held.job.checkpoints_kept);
  held.attempt.new_checkpoint = true;
  store_.update_attempt(held.attempt);
  EventRow event = detail(held, EventType::kCheckpoint, now);
  event.checkpoint = row;
  store_.append_event(event);
}

JobAfter QueueCore::apply(const CompleteAttempt& command, Now now) {
  {
    const AttemptRow attempt = find_attempt_of(command.key);
    if (!attempt.report_digest.empty()) {
      if (attempt.report_digest == command.report_digest) return {attempt.end_state};
      throw wrong_state(*store_.job(attempt.job_id),
                        "attempt " + attempt.uid + " was already reported with different content");
    }
  }
  Held held = require_current(command.key, now);
  JobRow& job = held.job;
  AttemptRow& attempt = held.attempt;
  attempt.report_digest = command.report_digest;
  attempt.usage = command.usage;
  if (job.state == JobState::kCancelling)
    return {end_cancelled(held, AttemptOutcome::kCancelled, now)};
  if (command.outcome == AttemptOutcome::kCancelled)
    throw wrong_state(job, "it has no request to cancel; release the lease instead");
  if (command.outcome == AttemptOutcome::kFailed)
    return {end_failed(held, AttemptOutcome::kFailed, command.failure, now)};

  if (job.state != JobState::kRunning)
    throw wrong_state(job, "an attempt succeeds after StartAttempt, not before");
  std::vector<Refused::Precondition> missing;
  for (const ArtifactRow& artifact : command.artifacts) {
    const auto size = store_.blob_size(Scope::everything(), artifact.digest);
    if (size && *size == artifact.size_bytes) continue;
    missing.push_back({.type = "INPUTS_MISSING",
                       .subject = artifact.digest,
                       .description = artifact.name + " is not in the blob store with " +
                                      std::to_string(artifact.size_bytes) + " bytes"});
  }
  if (!missing.empty()) {
    Refused refused(Refusal::kFailedPrecondition, "INPUTS_MISSING",
                    std::to_string(missing.size()) + " artefact(s) are not in the blob store");
    refused.preconditions = std::move(missing);
    throw refused;
  }
  for (const ArtifactRow& artifact : command.artifacts) store_.insert_artifact(job.id, artifact);
  store_.set_summary(job.id, command.summary_json);
  close(attempt, AttemptOutcome::kSucceeded, JobState::kSucceeded, now);
  job.open_attempt.reset();
  job.failure = {};
  move(job, JobEvent::kSucceed, {.attempt = &attempt}, now);
  keep_result(store_, options_.results, job, store_.worker_version(command.key.worker_id));
  settle_equals(job, 0, now);
  learn_from(job, attempt);
  return {job.state};
}

JobAfter QueueCore::apply(const ReleaseLease& command, Now now) {
  {
    const AttemptRow attempt = find_attempt_of(command.key);
    // A repeated request gets the stored answer, even if the job has changed since.
    if (attempt.outcome == AttemptOutcome::kReleased) return {attempt.end_state};
  }
  Held held = require_current(command.key, now);
  if (held.job.state == JobState::kCancelling)
    return {end_cancelled(held, AttemptOutcome::kReleased, now)};
  if (command.reason == ReleaseReason::kBusyForeign) {
    // The device counts as busy until the worker's next report, so that the job is not granted to
    // this device at once.
    if (Fleet::Member* member = fleet_.find(command.key.worker_id)) {
      for (const std::string& id : held.attempt.device_ids) {
        const auto device = member->devices.find(id);
        if (device == member->devices.end()) continue;
        device->second.state = DeviceState::kBusyForeign;
        device->second.state_reason = command.message;
      }
    }
  }
  return {end_released(held, command.reason, command.message, now)};
}

}  // namespace quasi::server
