// The submission of jobs.

#include <map>
#include <utility>

#include "server/queue/dependencies/prerequisites.hpp"
#include "server/queue/queue_core.hpp"
#include "server/queue/refused.hpp"
#include "server/queue/schedulable.hpp"
#include "server/queue/turns/change_checks.hpp"

namespace quasi::server {
namespace {

/// Prefix of the line of a stored answer that names a job with a taken result.
constexpr char kTaken = '=';

Submitted stored_answer(const std::string& text) {
  Submitted submitted{.uids = {}, .reused = {}, .set_uid = {}, .replayed = true};
  for (std::string& line : lines_of(text)) {
    if (line.starts_with("s_")) {
      submitted.set_uid = line;
      continue;
    }
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

Submitted QueueCore::apply(const SubmitJobs& command, Now now) {
  const std::string request = request_key(command.scope, command.request_id);
  if (const auto answer = replay(store_, request, "SubmitJobs", command.body_sha256))
    return stored_answer(*answer);
  require_inputs(store_, command.scope, command.jobs);
  std::vector<NewJob> jobs = command.jobs;
  Prerequisites prerequisites(store_, command.scope, jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    NewJob& job = jobs[i];
    job.row.owner_id = command.scope.principal_id;
    job.row.tenant = command.scope.tenant;
    prerequisites.resolve(i);
    if (job.row.unmet > 0) continue;
    if (!job.artifact_inputs.empty() && options_.results.action_of)
      job.row.action = options_.results.action_of(job.spec, job.inputs);
    job.row.taken_from = result_for(store_, options_.results, job.row);
  }
  require_schedulable(store_, jobs);
  require_quota(store_, command.scope, jobs, options_.quotas, options_.default_max_runtime_ms);
  Submitted submitted;
  std::vector<std::string> answer;
  if (command.set) {
    submitted.set_uid = insert_set(*command.set, jobs, now);
    answer.push_back(submitted.set_uid);
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const JobRow& row = jobs[i].row;
    insert(jobs[i], now);
    prerequisites.insert(i);
    submitted.uids.push_back(row.uid);
    answer.push_back(row.taken_from ? kTaken + row.uid : row.uid);
    if (row.taken_from) submitted.reused.push_back(row.uid);
  }
  store_.count_new_jobs(command.scope,
                        static_cast<std::int64_t>(jobs.size() - submitted.reused.size()));
  // Results that were there already may meet a stop rule.
  if (command.set && !command.set->stop_rules.empty())
    for (const NewJob& job : jobs)
      if (job.row.taken_from) settle(job.row, now);
  store_.save_request(
      request,
      {.method = "SubmitJobs", .body_sha256 = command.body_sha256, .response = joined(answer)},
      now.wall_ms + options_.request_ttl_ms);
  return submitted;
}

std::string QueueCore::insert_set(const JobSetRow& given, std::vector<NewJob>& jobs, Now now) {
  JobSetRow set = given;
  set.uid = make_id('s', now.wall_ms, random_);
  set.owner_id = jobs.front().row.owner_id;
  set.tenant = jobs.front().row.tenant;
  set.visibility = jobs.front().row.visibility;
  set.created_ms = now.wall_ms;
  set.id = store_.insert_set(set);
  std::int64_t room = set.max_concurrent;
  for (NewJob& job : jobs) {
    job.row.set_id = set.id;
    if (set.max_concurrent == 0 || job.row.taken_from || job.row.unmet > 0) continue;
    job.row.set_waits = room-- <= 0;
  }
  return set.uid;
}

void QueueCore::insert(NewJob& job, Now now) {
  JobRow& row = job.row;
  const bool is_taken = row.taken_from.has_value();
  row.uid = make_id('j', now.wall_ms, random_);
  row.ready = !is_taken && row.not_before_ms <= now.wall_ms;
  if (row.max_runtime_ms == 0) row.max_runtime_ms = options_.default_max_runtime_ms;
  EventRow event{.job_seq = 1, .time_ms = now.wall_ms, .message = {}};
  if (is_taken) {
    row.state = JobState::kSucceeded;
    row.ended_ms = now.wall_ms;
    event.message = kTookResult;
  } else if (row.unmet > 0) {
    row.state = JobState::kBlocked;
    event.message = "it waits for " + std::to_string(row.unmet) +
                    (row.unmet == 1 ? " other job" : " other jobs");
  } else if (row.set_waits) {
    row.state = JobState::kBlocked;
    event.message = "as many jobs of its set run as may at a time";
  } else if (row.ready && waits_for_an_equal(store_, options_.results, row)) {
    row.state = JobState::kBlocked;
    event.message = kWaitsForEqual;
  } else {
    row.state = JobState::kQueued;
  }
  if (!is_taken && !row.ready) event.not_before_ms = row.not_before_ms;
  row.revision = 1;
  row.job_seq = 1;
  row.created_ms = now.wall_ms;
  row.id = store_.insert_job(job);
  event.job_id = row.id;
  event.to = row.state;
  store_.append_event(event);
  became_ready_ = became_ready_ || row.state == JobState::kQueued;
  if (is_taken) store_.take_result(row.id, *row.taken_from);
}

}  // namespace quasi::server
