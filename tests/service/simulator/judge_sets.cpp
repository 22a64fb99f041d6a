// Judges sets of jobs: how many of them run, when a set stops, and their cancel.

#include <algorithm>

#include "tests/service/simulator/judge.hpp"

namespace quasi::sim {
namespace {

bool waits(JobState state) {
  return state == JobState::kBlocked || state == JobState::kHeld || state == JobState::kQueued;
}

bool takes_a_place(JobState state) {
  return state == JobState::kQueued || state == JobState::kLeased || state == JobState::kRunning ||
         state == JobState::kCancelling;
}

}  // namespace

void Judge::follow_birth_in_set(Job& job, std::int64_t set, std::int64_t row) {
  job.set = set;
  Set& known = sets_[set];
  known.jobs.push_back(row);
  if (known.jobs.size() > 1) return;
  server::Rows id(sql("SELECT uid FROM job_sets WHERE id=?").bind(set));
  if (id.next()) known.uid = id->text(0);
  if (const auto plan = SetPlan::of(job.spec))
    known.plan = *plan;
  else
    report_violation("sets", job, "begins a set, and its person wanted none");
}

void Judge::count_in_set(const Job& job, const Event& event) {
  Set& set = sets_[job.set];
  if (event.to == JobState::kFailed && event.reason != server::FailureReason::kDependency)
    ++set.failures;
  // The rules of a set that has stopped are not counted any more.
  const bool is_met = event.to == JobState::kSucceeded && !set.is_stopped && job.figure >= 0 &&
                      job.figure < set.plan.rule_below;
  if (is_met && set.plan.rule_jobs > 0) ++set.met;
  const bool has_failed =
      set.plan.stop_after_failures > 0 && set.failures >= set.plan.stop_after_failures;
  const bool has_met = set.plan.rule_jobs > 0 && set.met >= set.plan.rule_jobs;
  if (set.is_stopped || !(has_failed || has_met)) return;
  set.is_stopped = true;
  ++counts_[has_failed ? "sets stopped by failures" : "sets stopped by a figure"];
  stopped_now_.insert(job.set);
  for (const std::int64_t row : set.jobs)
    if (takes_a_place(jobs_[row].state) && !waits(jobs_[row].state)) set.with_workers.insert(row);
}

void Judge::check_cancel(const Job& job, const Event& event) {
  const bool is_wanted =
      cancels_.contains(job.uid) || (job.set > 0 && cancels_.contains(sets_[job.set].uid));
  if (is_wanted) return;
  const bool is_stopped = stopped_now_.contains(job.set) && waits(job.state);
  if (!is_stopped)
    report_violation("sets", job, "is cancelled, and nobody wanted it: " + event.essence());
}

void Judge::note_set_cancel_answer(const std::string& uid) {
  ++counts_["cancelled sets"];
  const auto set = std::find_if(sets_.begin(), sets_.end(),
                                [&](const auto& entry) { return entry.second.uid == uid; });
  if (set == sets_.end())
    return report_violation("I1", "a set that was cancelled is unknown: " + uid);
  for (const std::int64_t row : set->second.jobs)
    if (const Job& job = jobs_[row];
        !server::is_final(job.state) && job.state != JobState::kCancelling)
      report_violation(
          "I12", job,
          "is " + std::string(server::name_of(job.state)) + " after the cancel of its set");
}

void Judge::check_sets() {
  for (const auto& [row, set] : sets_) {
    if (set.plan.max_concurrent == 0) continue;
    const auto count = std::count_if(set.jobs.begin(), set.jobs.end(), [&](std::int64_t job) {
      return takes_a_place(jobs_[job].state);
    });
    if (count > set.plan.max_concurrent)
      report_violation("sets", "more jobs of set " + std::to_string(row) + " run than its limit");
  }
  for (const std::int64_t row : stopped_now_)
    for (const std::int64_t job : sets_[row].jobs)
      if (waits(jobs_[job].state) && !sets_[row].with_workers.contains(job))
        report_violation("sets", jobs_[job], "still waits after its set has stopped");
  stopped_now_.clear();
}

void Judge::check_stored_sets() {
  server::Rows rows(
      sql("SELECT s.id, s.stopped_ms>0, coalesce((SELECT met FROM stop_rules r WHERE "
          "r.set_id=s.id), 0) FROM job_sets s"));
  std::size_t present = 0;
  while (rows.next()) {
    const auto set = sets_.find(rows->integer(0));
    if (set == sets_.end()) continue;
    ++present;
    if (set->second.is_stopped != (rows->integer(1) != 0) || set->second.met != rows->integer(2))
      report_violation("sets", "set " + set->second.uid + " has stopped " +
                                   std::to_string(rows->integer(1)) + ", and " +
                                   std::to_string(rows->integer(2)) + " of its jobs met its rule");
  }
  if (present != sets_.size()) report_violation("I1", "an acknowledged set of jobs is gone");
}

}  // namespace quasi::sim
