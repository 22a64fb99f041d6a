// Rules on the sets of jobs of sweeps: how many run at a time, and when the others stop.

#include <utility>

#include "server/queue/queue_core.hpp"
#include "server/queue/refused.hpp"
#include "server/queue/turns/change_checks.hpp"

namespace quasi::server {

bool QueueCore::is_full(const std::optional<RowId>& set_id) {
  if (!set_id) return false;
  const std::int64_t limit = store_.job_set(*set_id)->max_concurrent;
  return limit > 0 && store_.running_of_set(*set_id) >= limit;
}

void QueueCore::settle_set(RowId set_id, std::vector<JobRow>& left, Now now) {
  const JobSetRow set = *store_.job_set(set_id);
  const std::int64_t failures = set.stop_after_failures;
  if (failures > 0 && set.stopped_ms == 0 && store_.failures_of_set(set_id, failures) == failures)
    stop_set(set, left, now);
  while (!is_full(set_id)) {
    auto job = store_.next_of_set(set_id);
    if (!job) return;
    queue_or_take(*job, kSetHasRoom, now);
    if (is_final(job->state)) left.push_back(std::move(*job));
  }
}

void QueueCore::stop_set(const JobSetRow& set, std::vector<JobRow>& left, Now now) {
  store_.stop_set(set.id, now.wall_ms);
  const std::string why = "its set stopped after " + std::to_string(set.stop_after_failures) +
                          (set.stop_after_failures == 1 ? " failure" : " failures");
  for (const RowId id : store_.unfinished_of_set(set.id)) {
    JobRow job = *store_.job(id);
    if (job.state > JobState::kQueued) continue;
    job.cancel_requested_ms = now.wall_ms;
    change_state(job, JobEvent::kCancel, {.message = why}, now);
    left.push_back(std::move(job));
  }
}

std::vector<RowId> QueueCore::jobs_to_cancel(const CancelJobs& command) {
  std::vector<RowId> ids;
  if (!command.set_uid.empty()) {
    const auto set = store_.find_set(command.scope, command.set_uid);
    if (!set)
      throw Refused(Refusal::kNotFound, "JOB_SET", "there is no job set " + command.set_uid);
    ids = store_.unfinished_of_set(set->id);
    if (!ids.empty()) require_owner(command.scope, *store_.job(ids.front()));
  }
  for (const std::string& uid : command.uids) {
    const auto job = store_.find_job(command.scope, uid);
    if (!job) throw Refused(Refusal::kNotFound, "JOB", "there is no job " + uid);
    require_owner(command.scope, *job);
    ids.push_back(job->id);
  }
  return ids;
}

}  // namespace quasi::server
