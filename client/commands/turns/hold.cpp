#include "client/commands/turns/hold.hpp"

#include <nlohmann/json.hpp>

#include "client/commands/turns/id_parts.hpp"
#include "client/input/job_ids.hpp"
#include "client/views/job_view.hpp"

namespace quasi::client {
namespace {

/// Makes one call for each part of the jobs, and prints their states and priorities.
/// @param call  the method of the service
/// @param fill  completes a request that has its ids
template <class Request, class Call, class Fill>
ExitStatus change_turns(Session& session, const std::vector<std::string>& words, const Call& call,
                        const Fill& fill) {
  Console& console = session.console;
  Json document{{"jobs", Json::array()}};
  send_in_parts<Request>(resolve_job_ids(session, words), [&](Request& request) {
    fill(request);
    const auto response = session.server.call(call, request);
    for (const v1::JobTurn& job : response.jobs()) {
      const Json row{
          {"id", job.job_id()}, {"state", state_word(job.state())}, {"priority", job.priority()}};
      if (console.format() == Format::kJsonl)
        console.record(row);
      else if (console.format() == Format::kJson)
        document["jobs"].push_back(row);
      else if (console.format() == Format::kName)
        console.data(job.job_id() + "\n");
      else
        console.data(job.job_id() + "  " +
                     console.paint(colour_of(job.state()), state_word(job.state())) +
                     "  priority " + std::to_string(job.priority()) + "\n");
    }
  });
  if (console.format() == Format::kJson) console.document(document);
  return ExitStatus::kOk;
}

}  // namespace

ExitStatus hold(Session& session, const HoldOptions& options) {
  return change_turns<v1::HoldJobsRequest>(
      session, options.jobs, &Jobs::HoldJobs,
      [&](v1::HoldJobsRequest& request) { request.set_reason(options.reason); });
}

ExitStatus release(Session& session, const HoldOptions& options) {
  return change_turns<v1::ReleaseJobsRequest>(
      session, options.jobs, &Jobs::ReleaseJobs,
      [&](v1::ReleaseJobsRequest& request) { request.set_reason(options.reason); });
}

ExitStatus reprioritise(Session& session, const ReprioritiseOptions& options) {
  return change_turns<v1::ReprioritiseJobsRequest>(
      session, {options.job}, &Jobs::ReprioritiseJobs,
      [&](v1::ReprioritiseJobsRequest& request) { request.set_priority(options.priority); });
}

}  // namespace quasi::client
