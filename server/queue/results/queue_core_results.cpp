// Rules on equal jobs: which one runs, and which ones wait for its result and take it.

#include <algorithm>

#include "server/queue/queue_core.hpp"

namespace quasi::server {

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
  if (job.action.empty() || job.cache != CachePolicy::kUse) return false;
  if (const auto source = result_for(store_, options_.results, job)) {
    take_result(job, *source, now);
    return true;
  }
  if (!an_equal_runs(store_, options_.results, job)) return false;
  move(job, JobEvent::kWaitForEqual, {.message = kWaitsForEqual}, now);
  return true;
}

std::size_t QueueCore::settle_equals(const JobRow& job, RowId after, Now now) {
  if (job.action.empty()) return 0;
  const ResultCacheOptions& options = options_.results;
  const SharedAction equals = shared_action_of(options, job);
  auto waiting = store_.waiting_equals(equals, JobState::kBlocked, after, kMostEquals);
  const bool all_seen = waiting.size() < kMostEquals;
  const bool is_shared = options.sharing != ResultSharing::kNone;
  // Queued jobs need no look unless there is a result, because they go on by themselves.
  const bool has_ended = job.state == JobState::kSucceeded;
  if (waiting.empty() && !has_ended) return 0;
  const auto source = is_shared ? store_.find_result(equals) : std::nullopt;
  if (source) {
    auto queued = store_.waiting_equals(equals, JobState::kQueued, 0, kMostEquals);
    std::erase_if(queued, [&](const JobRow& other) { return other.id == job.id; });
    if (!all_seen || queued.size() + 1 >= kMostEquals) unsettled_.push_back({.job = job.id});
    waiting.insert(waiting.end(), queued.begin(), queued.end());
    for (JobRow& other : waiting) take_result(other, *source, now);
    return waiting.size();
  }
  if (waiting.empty() || an_equal_runs(store_, options, job)) return waiting.size();
  std::vector<JobRow> queued = queued_equals(store_, options, job);
  for (JobRow& other : waiting) {
    if (one_comes_first(queued, other)) continue;
    move(other, JobEvent::kDependenciesMet, {.message = "no equal job comes first any more"}, now);
    if (is_shared) queued.push_back(other);
  }
  if (!all_seen) unsettled_.push_back({.job = job.id, .after = waiting.back().id});
  return waiting.size();
}

void QueueCore::settle_further_equals(Now now) {
  for (std::size_t seen = 0; seen < kMostEquals && !unsettled_.empty();) {
    const Unsettled next = unsettled_.front();
    unsettled_.pop_front();
    const auto job = store_.job(next.job);
    seen += 1 + (job ? settle_equals(*job, next.after, now) : 0);
  }
}

void QueueCore::explain_equals(const Scope& scope, Explanation& explanation) {
  if (explanation.reason != WaitReason::kEqualJob) return;
  const auto running = store_.running_equals(shared_action_of(options_.results, explanation.job));
  explanation.blocking_jobs = static_cast<std::int64_t>(running.size());
  for (const JobRow& other : running)
    if (is_visible(scope, other)) explanation.blocking.push_back(other.uid);
}

}  // namespace quasi::server
