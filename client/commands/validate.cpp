#include "client/commands/validate.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/engine/local_check.hpp"
#include "client/session/upload.hpp"
#include "client/views/readable.hpp"
#include "proto/wire/status.hpp"
#include "proto/wire/validate.hpp"

namespace quasi::client {
namespace {

/// The answer of the server, or the reason why there is none.
struct ServerView {
  bool asked = false;
  std::string why_not;
  v1::ValidateJobsResponse response;
};

ServerView ask_server(Session& session, const std::vector<JobRequest>& requests) {
  v1::ValidateJobsRequest request;
  for (const JobRequest& job : requests) *request.add_jobs() = job.spec;
  ServerView view;
  const grpc::Status status = session.server.try_call(&Jobs::ValidateJobs, request, view.response,
                                                      std::min(session.server.timeout_s(), 3.0));
  view.asked = status.ok();
  if (!status.ok()) {
    const Failure failure = session.server.refused(status);
    if (failure.status != ExitStatus::kUnreachable) throw failure;
    view.why_not = failure.what();
  }
  return view;
}

}  // namespace

ExitStatus validate(Session& session, const ValidateOptions& options) {
  std::vector<JobRequest> requests = build_jobs(options.job);
  check_limits(requests);
  Console& console = session.console;
  Json document{{"ok", true}, {"jobs", Json::array()}, {"server", Json()}};
  std::string text;
  for (const JobRequest& request : requests) {
    const std::string device = options.job.device == "cuda" ? "cuda:0" : "cpu";
    const DeckReport report =
        options.job.inputs.empty()
            ? check_deck(request, device)
            : DeckReport{.checked = false, .why_not = "--input changes the deck", .report = {}};
    document["jobs"].push_back({{"source", request.source},
                                {"name", request.spec.name()},
                                {"kind", std::string(wire::kind_of(request.spec))},
                                {"checked", report.checked},
                                {"report", report.checked ? report.report : Json()}});
    if (console.json()) continue;
    // The verdict stands first. It is printed only when the server has been asked too.
    text += console.paint(Colour::kGreen, "ok") + "  " +
            console.paint(Colour::kBold, printable(request.source)) + "  " +
            std::string(wire::kind_of(request.spec)) + "\n";
    if (report.checked)
      text += report_text(console, report.report);
    else
      console.note("deck not checked: " + report.why_not);
  }
  if (!options.offline) {
    hash_inputs(requests);
    const int n_jobs = static_cast<int>(requests.size());
    const ServerView view = ask_server(session, requests);
    Json problems = Json::array();
    Json warnings = Json::array();
    std::vector<Violation> violations;
    for (const auto& problem : view.response.problems()) {
      if (problem.reason() == wire::reason::kInputsMissing) continue;  // submit uploads them first
      violations.push_back({problem.field(), problem.message()});
      problems.push_back({{"field", problem.field()},
                          {"message", problem.message()},
                          {"reason", problem.reason()}});
    }
    for (const auto& warning : view.response.warnings()) {
      warnings.push_back({{"field", warning.field()}, {"message", warning.message()}});
      console.warn(readable_field(warning.field(), n_jobs) + ": " + warning.message());
    }
    document["server"] = Json{{"address", session.server.address()},
                              {"asked", view.asked},
                              {"problems", problems},
                              {"warnings", warnings}};
    if (!violations.empty()) {
      Failure failure(
          ExitStatus::kInvalidInput,
          readable_field(violations.front().field, n_jobs) + ": " + violations.front().message,
          "fix it in the job file or on the command line");
      failure.reason = "FIELD_INVALID";
      failure.violations = std::move(violations);
      throw failure;
    }
    if (!view.asked) console.note("the server's rules were not asked: " + view.why_not);
  }
  if (console.json())
    console.document(document);
  else
    console.data(text);
  return ExitStatus::kOk;
}

}  // namespace quasi::client
