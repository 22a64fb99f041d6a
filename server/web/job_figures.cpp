#include "server/web/job_figures.hpp"

#include <algorithm>

#include "server/web/words.hpp"

namespace quasi::server {
namespace {

constexpr std::int32_t kPage = 1'000;

bool has_open_attempt(JobState state) {
  return state == JobState::kLeased || state == JobState::kRunning ||
         state == JobState::kCancelling;
}

double seconds_between(std::int64_t from_ms, std::int64_t to_ms) {
  return static_cast<double>(std::max<std::int64_t>(0, to_ms - from_ms)) / 1'000.0;
}

}  // namespace

void JobFigures::follow() {
  for (;;) {
    const auto changes = store_.changes_after(seen_, kPage);
    for (const StateChange& change : changes) {
      count(change);
      seen_ = change.seq;
    }
    if (changes.size() < static_cast<std::size_t>(kPage)) return;
  }
}

void JobFigures::count(const StateChange& change) {
  ByKind& kind = kinds_[change.kind];
  if (!change.from) {
    ++kind.submitted;
    return;
  }
  if (change.reinstated) ++reinstated_;
  if (change.to == JobState::kLeased && change.attempt == 1 && !change.reinstated)
    kind.wait_seconds.observe(seconds_between(change.created_ms, change.time_ms));
  if (has_open_attempt(*change.from) && !has_open_attempt(change.to)) ++attempts_[change.outcome];
  if (!is_final(change.to)) return;
  ++kind.finished[{change.to, change.reason}];
  if (change.to == JobState::kSucceeded && change.follows_reinstatement) ++salvaged_;
  if (change.to == JobState::kCancelled && change.cancel_requested_ms > 0)
    cancel_seconds_.observe(seconds_between(change.cancel_requested_ms, change.time_ms));
  if (change.started_ms > 0)
    kind.run_seconds.observe(seconds_between(change.started_ms, change.time_ms));
}

void JobFigures::write(Exposition& out) const {
  out.family("quasi_jobs_submitted_total", "counter", "Jobs that were accepted.");
  for (const auto& [name, kind] : kinds_)
    out.sample({{"kind", name}}, static_cast<double>(kind.submitted));
  out.family("quasi_jobs_finished_total", "counter", "Jobs that reached a final state.");
  for (const auto& [name, kind] : kinds_)
    for (const auto& [end, n] : kind.finished)
      out.sample({{"kind", name},
                  {"outcome", lower_case(name_of(end.first))},
                  {"reason", end.second == FailureReason::kNone ? std::string("none")
                                                                : lower_case(name_of(end.second))}},
                 static_cast<double>(n));
  out.family("quasi_job_wait_seconds", "histogram", "Time from submission to the first grant.");
  for (const auto& [name, kind] : kinds_) out.sample({{"kind", name}}, kind.wait_seconds.view());
  out.family("quasi_job_run_seconds", "histogram", "Time from the first start to the end.");
  for (const auto& [name, kind] : kinds_) out.sample({{"kind", name}}, kind.run_seconds.view());
  out.family("quasi_attempts_total", "counter", "Attempts that ended.");
  for (const auto& [outcome, n] : attempts_)
    out.sample({{"outcome", std::string(word_of(outcome))}}, static_cast<double>(n));
  const auto expired = attempts_.find(AttemptOutcome::kExpired);
  out.family("quasi_leases_expired_total", "counter", "Leases whose worker was silent too long.");
  out.sample(expired == attempts_.end() ? 0.0 : static_cast<double>(expired->second));
  out.family("quasi_leases_reinstated_total", "counter", "Expired leases that became valid again.");
  out.sample(static_cast<double>(reinstated_));
  out.family("quasi_results_salvaged_total", "counter", "Results accepted from an expired lease.");
  out.sample(static_cast<double>(salvaged_));
  out.family("quasi_cancel_seconds", "histogram", "Time from a cancel to the end of the job.");
  out.sample({}, cancel_seconds_.view());
}

}  // namespace quasi::server
