// Rules on the sets of jobs of sweeps: how many run at a time, and when the others stop.

#include <utility>

#include "proto/wire/sweeps/figures.hpp"
#include "server/queue/queue_core.hpp"
#include "server/queue/refused.hpp"
#include "server/queue/turns/change_checks.hpp"

namespace quasi::server {

bool QueueCore::is_full(const std::optional<RowId>& set_id) {
  if (!set_id) return false;
  const std::int64_t limit = store_.job_set(*set_id)->max_concurrent;
  return limit > 0 && store_.running_of_set(*set_id) >= limit;
}

std::string QueueCore::reason_to_stop(const JobSetRow& set, const JobRow& job) {
  if (set.stopped_ms > 0) return "";
  const std::int64_t failures = set.stop_after_failures;
  if (failures > 0 && store_.failures_of_set(set.id, failures) == failures)
    return "its set stopped after " + std::to_string(failures) +
           (failures == 1 ? " failure" : " failures");
  return job.state == JobState::kSucceeded ? apply_stop_rules(set, job) : "";
}

std::string QueueCore::apply_stop_rules(const JobSetRow& set, const JobRow& job) {
  const std::vector<StopRuleRow> rules = store_.stop_rules_of(set.id);
  if (rules.empty()) return "";
  const wire::Figures figures = wire::figures_in(store_.summary_of(job.id));
  std::string why;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const wire::StopCondition& condition = rules[i].condition;
    const std::optional<double> figure = wire::number_of(figures, condition.figure);
    if (figure && !wire::holds(*figure, condition.comparison, condition.value)) continue;
    store_.count_in_stop_rule(set.id, i, figure.has_value());
    if (!figure || rules[i].met + 1 < condition.jobs || !why.empty()) continue;
    why = "its set stopped, because " + wire::text_of(condition) + ": " + wire::shortest(*figure) +
          " in job " + job.uid + " (" + job.name + ")";
  }
  return why;
}

void QueueCore::settle_set(const JobRow& changed, std::vector<JobRow>& left, Now now) {
  const RowId set_id = *changed.set_id;
  const JobSetRow set = *store_.job_set(set_id);
  if (const std::string why = reason_to_stop(set, changed); !why.empty())
    stop_set(set, why, left, now);
  while (!is_full(set_id)) {
    auto job = store_.next_of_set(set_id);
    if (!job) return;
    queue_or_take(*job, kSetHasRoom, now);
    if (is_final(job->state)) left.push_back(std::move(*job));
  }
}

void QueueCore::stop_set(const JobSetRow& set, const std::string& why, std::vector<JobRow>& left,
                         Now now) {
  store_.stop_set(set.id, why, now.wall_ms);
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
