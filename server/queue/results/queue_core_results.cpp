// Rules on equal jobs: which one runs, and which ones wait for its result and take it.

#include <algorithm>

#include "server/queue/queue_core.hpp"

namespace quasi::server {

bool QueueCore::an_equal_job_runs(const JobRow& job) {
  const std::vector<JobRow> running = running_equals_of(store_, options_.results, job);
  return std::any_of(running.begin(), running.end(), [&](const JobRow& other) {
    if (other.id == job.id || !other.open_attempt) return false;
    const auto attempt = store_.attempt(*other.open_attempt);
    const Fleet::Member* worker = attempt ? fleet_.find(attempt->worker_id) : nullptr;
    // The result of a worker of another version is not kept.
    return worker != nullptr && worker->worker.version == options_.results.version;
  });
}

void QueueCore::take_result(JobRow& job, RowId source, Now now) {
  give_result(job, source, now);
  settle(job, now);
}

void QueueCore::give_result(JobRow& job, RowId source, Now now) {
  job.taken_from = source;
  job.failure = {};
  store_.set_source(job.id, source);
  change_state(job, JobEvent::kTakeResult, {.message = kTookResult}, now);
  store_.take_result(job.id, source);
}

bool QueueCore::needs_no_run(JobRow& job, Now now) {
  if (const auto source = result_for(store_, options_.results, job)) {
    take_result(job, *source, now);
    return true;
  }
  if (!an_equal_job_runs(job)) return false;
  for (JobRow& equal : waiting_equals_of(store_, options_.results, job))
    if (equal.state == JobState::kQueued && equal.ready)
      move(equal, JobEvent::kWaitForEqual, {.message = kWaitsForEqual}, now);
  return true;
}

void QueueCore::settle_equals(const JobRow& ended, Now now) {
  for (JobRow& job : waiting_equals_of(store_, options_.results, ended)) {
    if (job.id == ended.id) continue;  // it goes on by itself
    if (const auto source = result_for(store_, options_.results, job))
      take_result(job, *source, now);
    else if (job.state == JobState::kBlocked && !an_equal_job_runs(job))
      move(job, JobEvent::kDependenciesMet, {.message = "no equal job runs any more"}, now);
  }
}

}  // namespace quasi::server
