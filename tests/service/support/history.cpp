#include "tests/service/support/history.hpp"

#include <google/protobuf/util/time_util.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace quasi::test {

using google::protobuf::util::TimeUtil;

void History::worker_log(const std::string& worker, const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    // A killed daemon may leave half a line.
    const auto event = nlohmann::json::parse(line, nullptr, false);
    if (!event.is_object() || event.value("event", "") != "attempt_over") continue;
    if (event.value("ending", "") == "succeeded")
      accepted_[event.at("job")].insert(event.at("fence").get<std::uint64_t>());
  }
  (void)worker;
}

void History::judge_job(const v1::Job& job, Verdict& verdict) const {
  const auto offend = [&](int& count, const std::string& what) {
    ++count;
    std::string attempts;
    for (const auto& attempt : job.attempt_history())
      attempts += " #" + std::to_string(attempt.number()) + "/f" + std::to_string(attempt.fence()) +
                  ":" + v1::AttemptOutcome_Name(attempt.outcome()).substr(16) + "@" +
                  attempt.worker_name();
    verdict.offences.push_back(job.id() + ": " + what + ";" + attempts);
  };
  if (job.state() != v1::JOB_STATE_SUCCEEDED) {
    const bool ended =
        job.state() == v1::JOB_STATE_FAILED || job.state() == v1::JOB_STATE_CANCELLED;
    offend(ended ? verdict.failed : verdict.lost,
           "ended as " + v1::JobState_Name(job.state()) + " " + job.failure().message());
    return;
  }
  std::set<std::uint64_t> successes;
  const v1::Attempt* before = nullptr;
  for (const auto& attempt : job.attempt_history()) {
    if (attempt.outcome() == v1::ATTEMPT_OUTCOME_SUCCEEDED) successes.insert(attempt.fence());
    if (attempt.outcome() == v1::ATTEMPT_OUTCOME_UNSPECIFIED)
      offend(verdict.doubles, "an attempt is still open");
    if (before) {
      if (attempt.fence() <= before->fence()) offend(verdict.stale, "fences do not rise");
      if (TimeUtil::TimestampToMilliseconds(attempt.granted()) + set_back_ms_ <
          TimeUtil::TimestampToMilliseconds(before->ended()))
        offend(verdict.doubles, "two attempts were open at once");
    }
    before = &attempt;
  }
  if (successes.size() != 1)
    offend(verdict.doubles, std::to_string(successes.size()) + " attempts succeeded");
  if (job.attempts() > job.max_attempts()) offend(verdict.uncounted, "too many attempts");
  if (const auto accepted = accepted_.find(job.id()); accepted != accepted_.end())
    for (const std::uint64_t fence : accepted->second)
      if (!successes.contains(fence))
        offend(verdict.stale,
               "fence " + std::to_string(fence) + " was accepted but is not the job's");
  // The summary in the result must be that of the successful attempt.
  const auto summary = nlohmann::json::parse(job.summary_json(), nullptr, false);
  if (summary.is_object() && summary.contains("attempt") && !job.attempt_history().empty() &&
      summary["attempt"] != job.attempt_history(job.attempt_history_size() - 1).number())
    offend(verdict.stale, "the result is of attempt " + summary["attempt"].dump());
  if (job.artifacts().empty()) offend(verdict.lost, "succeeded without artefacts");
}

History::Verdict History::judge() const {
  Verdict verdict;
  for (const auto& id : acknowledged_)
    if (!jobs_.contains(id)) {
      ++verdict.lost;
      verdict.offences.push_back(id + ": acknowledged, but the server does not know it");
    }
  std::set<std::uint64_t> fences;
  for (const auto& [id, job] : jobs_) {
    judge_job(job, verdict);
    for (const auto& attempt : job.attempt_history())
      if (!fences.insert(attempt.fence()).second) {
        ++verdict.stale;
        verdict.offences.push_back("fence " + std::to_string(attempt.fence()) + " was given twice");
      }
  }
  return verdict;
}

std::size_t History::attempts() const {
  std::size_t count = 0;
  for (const auto& [id, job] : jobs_) count += static_cast<std::size_t>(job.attempt_history_size());
  return count;
}

std::map<std::string, int> History::outcomes() const {
  std::map<std::string, int> counts;
  for (const auto& [id, job] : jobs_)
    for (const auto& attempt : job.attempt_history())
      ++counts[v1::AttemptOutcome_Name(attempt.outcome()).substr(16)];
  return counts;
}

}  // namespace quasi::test
