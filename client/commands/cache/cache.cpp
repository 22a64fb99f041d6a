#include "client/commands/cache/cache.hpp"

#include <nlohmann/json.hpp>

#include "client/input/job_ids.hpp"
#include "client/views/job_view.hpp"
#include "client/views/readable.hpp"
#include "proto/wire/action/action.hpp"

namespace quasi::client {
namespace {

Json comparison_json(const v1::Job& first, const v1::Job& second,
                     const std::vector<wire::ActionDifference>& found) {
  const auto job_json = [](const v1::Job& job) {
    return Json{{"id", job.id()},
                {"action", job.action().empty() ? Json() : Json(job.action())},
                {"reused_from", job.reused_from().empty() ? Json() : Json(job.reused_from())}};
  };
  Json differences = Json::array();
  for (const wire::ActionDifference& one : found)
    differences.push_back({{"field", one.name}, {"first", one.first}, {"second", one.second}});
  return {{"jobs", {job_json(first), job_json(second)}},
          {"equal", found.empty() && first.action() == second.action()},
          {"differences", differences}};
}

/// Returns why two jobs with equal fields still have results of their own; "" if one took that of
/// the other.
std::string policy_text(const v1::Job& first, const v1::Job& second) {
  if (first.reused_from() == second.id() || second.reused_from() == first.id() ||
      (!first.reused_from().empty() && first.reused_from() == second.reused_from()))
    return "";
  for (const v1::Job* job : {&first, &second}) {
    if (job->spec().cache() == v1::CACHE_POLICY_OFF) return job->id() + " was sent with --no-cache";
    if (job->spec().cache() == v1::CACHE_POLICY_REFRESH)
      return job->id() + " was sent with --refresh";
  }
  return "a job takes a result that was there when it was submitted";
}

std::string comparison_text(const v1::Job& first, const v1::Job& second,
                            const std::vector<wire::ActionDifference>& found) {
  if (first.action().empty() || second.action().empty())
    return (first.action().empty() ? first : second).id() +
           " is test work, whose results are not kept\n";
  if (!found.empty()) {
    std::string text = "the jobs have different results; they differ in\n";
    for (const wire::ActionDifference& one : found)
      text += "  " + printable(one.name) + "\n    " + printable(one.first) + "\n    " +
              printable(one.second) + "\n";
    return text;
  }
  if (first.action() != second.action())
    return "the jobs have equal fields, but servers with results of different epochs took them\n";
  const std::string policy = policy_text(first, second);
  return "the jobs have the same result (action " + first.action().substr(0, 16) + ")" +
         (policy.empty() ? "" : "; " + policy) + "\n";
}

}  // namespace

ExitStatus cache(Session& session, const CacheOptions& options) {
  const std::vector<std::string>& words = options.words;
  if (words.size() != 3 || words.front() != "explain")
    throw Failure(ExitStatus::kUsage, "cache: give the action 'explain' and two jobs",
                  "quasi cache explain JOB JOB");
  std::vector<v1::Job> jobs;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::vector<std::string> ids = resolve_job_ids(session, {words[i]});
    if (ids.size() != 1)
      throw Failure(ExitStatus::kUsage,
                    "'" + words[i] + "' names " + std::to_string(ids.size()) + " jobs, not one",
                    "give the id of a job: quasi list");
    v1::GetJobRequest request;
    request.set_job_id(ids.front());
    jobs.push_back(session.server.call(&Jobs::GetJob, request).job());
  }
  const auto found = wire::differences(jobs[0].spec(), jobs[1].spec());
  Console& console = session.console;
  if (console.json())
    console.document(comparison_json(jobs[0], jobs[1], found));
  else
    console.data(comparison_text(jobs[0], jobs[1], found));
  return ExitStatus::kOk;
}

}  // namespace quasi::client
