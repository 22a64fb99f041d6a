// Rules on jobs that wait for others: what the end of a job does to them.

#include <utility>

#include "server/queue/dependencies/prerequisites.hpp"
#include "server/queue/queue_core.hpp"

namespace quasi::server {
namespace {

/// Returns the reason why the end of `source` lets a job that waits for its success fail.
std::string fault_of(const JobRow& source) {
  return "job " + source.uid + ", for whose success it waited, " +
         (source.state == JobState::kCancelled ? "was cancelled" : "failed");
}

}  // namespace

void QueueCore::settle(const JobRow& left, Now now) {
  // A loop, because a chain of jobs may be as long as the queue.
  std::vector<JobRow> jobs = {left};
  while (!jobs.empty()) {
    const JobRow job = std::move(jobs.back());
    jobs.pop_back();
    if (is_final(job.state)) settle_dependents(job, jobs, now);
    if (job.set_id) settle_set(job, jobs, now);
  }
}

void QueueCore::settle_dependents(const JobRow& ended, std::vector<JobRow>& left, Now now) {
  for (Store::Dependent& dependent : store_.dependents_of(ended.id)) {
    JobRow& job = dependent.job;
    const bool has_failed =
        dependent.condition == Condition::kSuccess && ended.state != JobState::kSucceeded;
    const std::string fault = has_failed ? fault_of(ended) : take_inputs(job, ended);
    if (fault.empty())
      end_wait_for_one(job, now);
    else
      fail_by_dependency(job, fault, now);
    if (is_final(job.state)) left.push_back(std::move(job));
  }
}

std::string QueueCore::take_inputs(const JobRow& job, const JobRow& source) {
  for (const ArtifactInput& input : store_.artifact_inputs(job.id, source.id)) {
    const auto made = made_input(store_, source.id, input);
    if (!made)
      return "job " + source.uid + " made no whole artefact '" + input.artifact +
             "', which is the input '" + input.slot + "'";
    store_.insert_input(job.id, *made);
  }
  return "";
}

void QueueCore::fail_by_dependency(JobRow& job, const std::string& fault, Now now) {
  job.failure = {.reason = FailureReason::kDependency, .message = fault};
  change_state(job, JobEvent::kDependencyFailed, {.message = {}, .failure = job.failure}, now);
}

void QueueCore::end_wait_for_one(JobRow& job, Now now) {
  ++job.revision;
  if (job.unmet > 1) {
    --job.unmet;
    store_.update_job(job);
    return;
  }
  if (job.action.empty() && options_.results.action_of && !store_.made_inputs_of(job.id).empty()) {
    job.action = options_.results.action_of(store_.spec_of(job.id), store_.inputs_of(job.id));
    store_.set_action(job.id, job.action);
  }
  job.unmet = 0;
  queue_or_take(job, kDependenciesMet, now);
}

void QueueCore::queue_or_take(JobRow& job, const char* why, Now now) {
  // A delay after an attempt ends on the monotonic clock, whose end of it tick() awaits.
  job.ready = job.grants > 0 ? !retry_at_ms_.contains(job.id) : job.not_before_ms <= now.wall_ms;
  if (job.state == JobState::kHeld) return store_.update_job(job);
  job.set_waits = false;
  if (const auto source = result_for(store_, options_.results, job))
    return give_result(job, *source, now);
  job.set_waits = is_full(job.set_id);
  const bool waits = job.ready && waits_for_an_equal(store_, options_.results, job);
  if (job.set_waits || waits) return store_.update_job(job);
  change_state(job, JobEvent::kDependenciesMet, {.message = why}, now);
}

}  // namespace quasi::server
