#include "client/commands/cancel.hpp"

#include <unistd.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "client/commands/turns/id_parts.hpp"
#include "client/input/job_ids.hpp"
#include "client/input/sweeps/set_ids.hpp"
#include "client/session/follow.hpp"
#include "client/views/job_view.hpp"
#include "proto/wire/chunks.hpp"

namespace quasi::client {
namespace {

using CancelResult = v1::CancelJobsResponse::Result;

/// Asks for a confirmation if there are several jobs. @param act  the verb: "cancel" or "delete"
/// @throws Failure (kUsage) if no person can answer
bool confirmed(Session& session, std::size_t count, const std::string& act, bool yes) {
  if (count <= 1 || yes) return true;
  const std::string done = act == "cancel" ? "cancelled" : "deleted";
  if (isatty(STDIN_FILENO) == 0 || !session.console.terminal().err)
    throw Failure(ExitStatus::kUsage,
                  "this would " + act + " " + std::to_string(count) + " jobs; no job was " + done,
                  "confirm it with --yes");
  session.console.draw(act + " " + std::to_string(count) + " jobs? [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return true;
  session.console.note("nothing was " + done);
  return false;
}

std::vector<CancelResult> cancel_all(Session& session, const std::vector<std::string>& ids,
                                     const std::string& reason) {
  std::vector<CancelResult> results;
  send_in_parts<v1::CancelJobsRequest>(ids, [&](v1::CancelJobsRequest& request) {
    request.set_reason(reason);
    const v1::CancelJobsResponse response = session.server.call(&Jobs::CancelJobs, request);
    results.insert(results.end(), response.results().begin(), response.results().end());
  });
  return results;
}

/// Cancels the jobs of a set that have not ended, in one call.
std::vector<CancelResult> cancel_set(Session& session, const std::string& set,
                                     const std::string& reason) {
  v1::CancelJobsRequest request;
  request.set_job_set_id(set);
  request.set_reason(reason);
  const v1::CancelJobsResponse response = session.server.call(&Jobs::CancelJobs, request);
  return {response.results().begin(), response.results().end()};
}

/// Cancels jobs and waits until all have ended.
void end_all(Session& session, const std::vector<std::string>& ids, const std::string& reason) {
  cancel_all(session, ids, reason);
  std::map<std::string, v1::Job> jobs;
  if (follow(session.server, {.job_ids = ids, .until = Until::kAll}, jobs) != FollowEnd::kDone)
    throw Failure(static_cast<ExitStatus>(interrupt::exit_status()),
                  "interrupted; no job was deleted", "the jobs are cancelled; delete them again");
}

}  // namespace

ExitStatus cancel(Session& session, const CancelOptions& options) {
  const std::vector<std::string> ids = resolve_job_ids(session, options.jobs);
  if (!confirmed(session, ids.size(), "cancel", options.yes)) return ExitStatus::kOk;
  const auto set = only_set(session, options.jobs);
  const auto results = set ? cancel_set(session, set->id(), options.reason)
                           : cancel_all(session, ids, options.reason);
  Console& console = session.console;
  Json document{{"jobs", Json::array()}};
  for (const auto& result : results) {
    const Json row{{"id", result.job_id()}, {"state", state_word(result.state())}};
    if (console.format() == Format::kJsonl)
      console.record(row);
    else if (console.format() == Format::kJson)
      document["jobs"].push_back(row);
    else if (console.format() == Format::kName)
      console.data(result.job_id() + "\n");
    else
      console.data(
          result.job_id() + "  " +
          console.paint(colour_of(result.state()), state_word(result.state())) +
          (result.state() == v1::JOB_STATE_SUCCEEDED || result.state() == v1::JOB_STATE_FAILED
               ? " (it had ended before)"
               : "") +
          "\n");
  }
  if (console.format() == Format::kJson) console.document(document);
  return ExitStatus::kOk;
}

ExitStatus delete_jobs(Session& session, const DeleteOptions& options) {
  const std::vector<std::string> ids = resolve_job_ids(session, options.jobs);
  if (!confirmed(session, ids.size(), "delete", options.yes)) return ExitStatus::kOk;
  if (options.force) end_all(session, ids, options.reason);
  send_in_parts<v1::DeleteJobsRequest>(ids, [&](v1::DeleteJobsRequest& request) {
    request.set_reason(options.reason);
    request.set_request_id(wire::make_uuid());  // A repeated call must not find the jobs missing.
    (void)session.server.call(&Jobs::DeleteJobs, request);
  });
  Console& console = session.console;
  Json document{{"jobs", Json::array()}};
  for (const std::string& id : ids) {
    const Json row{{"id", id}, {"deleted", true}};
    if (console.format() == Format::kJsonl)
      console.record(row);
    else if (console.format() == Format::kJson)
      document["jobs"].push_back(row);
    else
      console.data(id + (console.format() == Format::kName ? "\n" : "  deleted\n"));
  }
  if (console.format() == Format::kJson) console.document(document);
  return ExitStatus::kOk;
}

}  // namespace quasi::client
