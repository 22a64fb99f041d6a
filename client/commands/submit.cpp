#include "client/commands/submit.hpp"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "client/commands/sweeps/deck_checks.hpp"
#include "client/commands/watch.hpp"
#include "client/engine/local_check.hpp"
#include "client/input/job_ids.hpp"
#include "client/input/sweeps/waits.hpp"
#include "client/session/upload.hpp"
#include "client/views/job_view.hpp"
#include "client/views/readable.hpp"
#include "proto/wire/chunks.hpp"
#include "proto/wire/status.hpp"
#include "proto/wire/sweeps/sweep.hpp"
#include "proto/wire/validate.hpp"

namespace quasi::client {
namespace {

namespace pb = google::protobuf;

constexpr std::int64_t kAnswersKeptMs = std::int64_t{7} * 86'400'000;

/// The answer to a submission.
struct Submitted {
  std::vector<std::string> ids;
  std::vector<std::string> names;
  std::vector<std::string> kinds;
  std::set<std::string> reused;  ///< ids of jobs that took the result of an equal one
  std::string set;               ///< id of the set of a sweep
  bool replayed = false;
};

std::string to_json(const pb::Message& message) {
  std::string text;
  pb::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  const auto status = pb::util::MessageToJsonString(message, &text, options);
  if (!status.ok())
    throw Failure(ExitStatus::kUnexpected,
                  "cannot convert the request to JSON: " + std::string(status.message()));
  return text;
}

/// Sends a request from the journal and removes it from the journal once it has an answer of any
/// kind. Without an answer it stays, and the failure says how to repeat it.
Submitted send(Session& session, const v1::SubmitJobsRequest& request) {
  grpc::ClientContext context;
  context.set_deadline(
      std::chrono::system_clock::now() +
      std::chrono::milliseconds(static_cast<std::int64_t>(session.server.timeout_s() * 1e3)));
  v1::SubmitJobsResponse response;
  grpc::Status status;
  {
    const interrupt::Scope cancel([&context] { context.TryCancel(); });
    status = session.server.jobs().SubmitJobs(&context, request, &response);
  }
  if (!status.ok()) {
    Failure failure = session.server.refused(status);
    const bool unanswered = is_transient(status) || interrupt::requested() ||
                            status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    if (!unanswered) {
      session.state.remove_pending(request.request_id());
      throw failure;
    }
    failure.remedy =
        "it is unknown if the server accepted it; the request is kept and can be repeated safely: "
        "quasi submit --resume";
    throw failure;
  }
  Submitted submitted;
  submitted.ids.assign(response.job_ids().begin(), response.job_ids().end());
  submitted.reused.insert(response.reused_job_ids().begin(), response.reused_job_ids().end());
  submitted.set = response.job_set_id();
  const std::size_t n_swept = request.has_sweep() ? wire::jobs_in_sweep(request.sweep()) : 0;
  for (std::size_t i = 0; i < n_swept + static_cast<std::size_t>(request.jobs_size()); ++i) {
    const v1::JobSpec job =
        n_swept > 0 ? wire::job_of_sweep(request.sweep(), i) : request.jobs(static_cast<int>(i));
    submitted.names.push_back(job.name());
    submitted.kinds.emplace_back(wire::kind_of(job));
  }
  const auto& trailer = context.GetServerTrailingMetadata();
  submitted.replayed = trailer.find("quasi-replayed") != trailer.end();
  session.state.remember_last(submitted.set.empty() ? submitted.ids : std::vector{submitted.set});
  session.state.remove_pending(request.request_id());
  return submitted;
}

Json submitted_json(const Submitted& submitted, const std::vector<UploadedFile>& files) {
  Json document{{"submitted", Json::array()},
                {"set", submitted.set.empty() ? Json() : Json(submitted.set)},
                {"replayed", submitted.replayed},
                {"inputs", Json::array()}};
  for (std::size_t i = 0; i < submitted.ids.size(); ++i)
    document["submitted"].push_back({{"id", submitted.ids[i]},
                                     {"name", i < submitted.names.size() ? submitted.names[i] : ""},
                                     {"kind", i < submitted.kinds.size() ? submitted.kinds[i] : ""},
                                     {"reused", submitted.reused.contains(submitted.ids[i])}});
  for (const UploadedFile& file : files)
    document["inputs"].push_back({{"slot", file.name},
                                  {"digest", file.digest},
                                  {"size_bytes", file.size_bytes},
                                  {"uploaded", file.sent}});
  return document;
}

/// Returns the words for a job that took the result of an equal one.
std::string taken(const Submitted& submitted, std::size_t i) {
  return submitted.reused.contains(submitted.ids[i]) ? "  (took the result of an equal job)" : "";
}

void print_submitted(Console& console, const Submitted& submitted) {
  if (!submitted.set.empty() && console.format() != Format::kName) {
    const std::string& first = submitted.names.front();
    const std::size_t reused = submitted.reused.size();
    return console.data(
        "submitted " + submitted.set + "  " + printable(first.substr(0, first.rfind('['))) + "  " +
        std::to_string(submitted.ids.size()) + (submitted.ids.size() == 1 ? " job" : " jobs") +
        (reused > 0 ? "  (" + std::to_string(reused) + " took the results of equal jobs)" : "") +
        "\n");
  }
  for (std::size_t i = 0; i < submitted.ids.size(); ++i)
    console.data(console.format() == Format::kName
                     ? submitted.ids[i] + "\n"
                     : "submitted " + submitted.ids[i] + "  " + printable(submitted.names[i]) +
                           taken(submitted, i) + "\n");
}

ExitStatus report_submission(Session& session, const SubmitOptions& options,
                             const Submitted& submitted, const std::vector<UploadedFile>& files) {
  Console& console = session.console;
  const Json head = submitted_json(submitted, files);
  if (options.watch || options.wait) {
    if (!console.json()) {
      // The ids are printed first, so that they remain visible if the user interrupts the watching.
      print_submitted(console, submitted);
      console.flush();
    }
    return follow_and_report(session, submitted.ids, Until::kAll,
                             options.watch ? Narration::kShown : Narration::kSilent, head);
  }
  if (console.json()) {
    console.document(head);
  } else {
    print_submitted(console, submitted);
    if (console.terminal().err)
      console.note("follow with: quasi watch last; files later: quasi fetch last");
  }
  return ExitStatus::kOk;
}

/// Repeating a pending request that is older than the server's stored answers could run its jobs
/// twice. If newer jobs of the same name exist, the user must look at them first.
void refuse_if_probably_done(Session& session, const PendingSubmission& pending,
                             const v1::SubmitJobsRequest& request) {
  if (now_unix_ms() - pending.created_ms < kAnswersKeptMs) return;
  v1::ListJobsRequest list;
  if (request.jobs_size() > 0) list.mutable_filter()->set_name_prefix(request.jobs(0).name());
  list.mutable_filter()->mutable_created_after()->set_seconds(pending.created_ms / 1000 - 60);
  list.mutable_filter()->mutable_created_before()->set_seconds(pending.created_ms / 1000 + 3600);
  list.set_page_size(10);
  const v1::ListJobsResponse found = session.server.call(&Jobs::ListJobs, list);
  if (found.jobs().empty()) return;
  throw Failure(
      ExitStatus::kConflict,
      "the pending submission " + pending.request_id + " of " + local_time(pending.created_ms) +
          " was probably accepted then: " + found.jobs(0).id() + " " + found.jobs(0).spec().name(),
      "if so, drop it: quasi submit --forget " + pending.request_id);
}

ExitStatus resume(Session& session, const SubmitOptions& options) {
  const std::vector<PendingSubmission> entries = session.state.pending();
  if (entries.empty()) {
    if (session.console.json())
      session.console.document(submitted_json({}, {}));
    else
      session.console.note("no submission is pending");
    return ExitStatus::kOk;
  }
  Submitted all;
  for (const PendingSubmission& entry : entries) {
    v1::SubmitJobsRequest request;
    const auto status = pb::util::JsonStringToMessage(entry.request_json, &request);
    if (!status.ok() || request.request_id() != entry.request_id)
      throw Failure(ExitStatus::kLocalFile,
                    "the pending submission " + entry.request_id + " is damaged",
                    "drop it: quasi submit --forget " + entry.request_id);
    const std::string store =
        session.server.call(&Jobs::GetCapabilities, v1::GetCapabilitiesRequest()).store_id();
    if (!entry.store_id.empty() && store != entry.store_id)
      throw Failure(
          ExitStatus::kConflict,
          "the pending submission " + entry.request_id + " is for another server, " +
              entry.address + "; at " + session.server.address() + " is another store",
          "name that server with --server, or drop the submission: quasi submit --forget " +
              entry.request_id);
    refuse_if_probably_done(session, entry, request);
    const Submitted submitted = send(session, request);
    session.console.note(submitted.replayed ? "was already accepted: " + entry.request_id
                                            : "sent again: " + entry.request_id);
    all.ids.insert(all.ids.end(), submitted.ids.begin(), submitted.ids.end());
    all.names.insert(all.names.end(), submitted.names.begin(), submitted.names.end());
    all.kinds.insert(all.kinds.end(), submitted.kinds.begin(), submitted.kinds.end());
    all.replayed = all.replayed || submitted.replayed;
  }
  session.state.remember_last(all.ids);
  return report_submission(session, options, all, {});
}

ExitStatus forget(Session& session, const std::string& request_id) {
  if (!wire::is_uuid(request_id))
    throw Failure(ExitStatus::kUsage, "--forget: '" + request_id + "' is no request id",
                  "request ids are the names of the files in " +
                      (session.state.directory() / "pending").string());
  for (const PendingSubmission& entry : session.state.pending())
    if (entry.request_id == request_id) {
      session.state.remove_pending(request_id);
      session.console.note("dropped " + request_id);
      return ExitStatus::kOk;
    }
  throw Failure(
      ExitStatus::kNotFound, "no pending submission " + request_id,
      "the pending submissions are in " + (session.state.directory() / "pending").string());
}

/// Warnings about a valid submission, e.g. that no worker fits at present.
void mention_warnings(Session& session, const v1::SubmitJobsRequest& submission) {
  v1::ValidateJobsRequest request;
  *request.mutable_jobs() = submission.jobs();
  if (submission.has_sweep()) *request.mutable_sweep() = submission.sweep();
  v1::ValidateJobsResponse response;
  // The warnings are advice only. If this call fails, the submission itself reports the reason.
  if (!session.server.try_call(&Jobs::ValidateJobs, request, response, session.server.timeout_s())
           .ok())
    return;
  constexpr int kShown = 3;
  for (int i = 0; i < std::min(kShown, response.warnings_size()); ++i)
    session.console.warn(readable_field(response.warnings(i).field(), submission.jobs_size()) +
                         ": " + response.warnings(i).message());
  if (response.warnings_size() > kShown)
    session.console.warn("and " + std::to_string(response.warnings_size() - kShown) +
                         " more, see: quasi validate");
}

ExitStatus dry_run(Session& session, const std::vector<JobRequest>& requests) {
  v1::ValidateJobsRequest request;
  for (const JobRequest& job : requests) *request.add_jobs() = job.spec;
  const v1::ValidateJobsResponse response = session.server.call(&Jobs::ValidateJobs, request);
  std::vector<Violation> problems;
  for (const auto& problem : response.problems())
    if (problem.reason() != wire::reason::kInputsMissing)  // submit would upload them first
      problems.push_back({problem.field(), problem.message()});
  if (!problems.empty()) {
    Failure failure(ExitStatus::kInvalidInput,
                    readable_field(problems.front().field, request.jobs_size()) + ": " +
                        problems.front().message,
                    "fix it in the job file or on the command line");
    failure.reason = "FIELD_INVALID";
    failure.violations = std::move(problems);
    throw failure;
  }
  Console& console = session.console;
  for (const auto& warning : response.warnings())
    console.warn(readable_field(warning.field(), request.jobs_size()) + ": " + warning.message());
  if (console.json()) {
    Json document{{"dry_run", true}, {"jobs", Json::array()}};
    for (const JobRequest& job : requests)
      document["jobs"].push_back(Json::parse(to_json(job.spec)));
    console.document(document);
    return ExitStatus::kOk;
  }
  for (const JobRequest& job : requests) {
    std::uint64_t bytes = 0;
    for (const v1::Input& input : job.spec.inputs()) bytes += input.size_bytes();
    console.data(
        "would submit  " + printable(job.spec.name()) + "  " +
        std::string(wire::kind_of(job.spec)) + "  " + std::to_string(job.spec.inputs_size()) +
        (job.spec.inputs_size() == 1 ? " input, " : " inputs, ") + readable_bytes(bytes) + "\n");
  }
  return ExitStatus::kOk;
}

/// Uploads what the server lacks, journals the request, and sends it.
ExitStatus send_jobs(Session& session, const SubmitOptions& options,
                     std::vector<JobRequest>& requests) {
  const v1::GetCapabilitiesResponse capabilities =
      session.server.call(&Jobs::GetCapabilities, v1::GetCapabilitiesRequest());
  hash_inputs(requests);
  if (options.dry_run) return dry_run(session, requests);
  const std::vector<UploadedFile> files = upload_inputs(session, requests);

  v1::SubmitJobsRequest request;
  request.set_request_id(wire::make_uuid());
  if (options.job.sweep.empty())
    for (const JobRequest& job : requests) *request.add_jobs() = job.spec;
  else
    *request.mutable_sweep() = sweep_of(options.job.sweep, requests.front().spec);
  mention_warnings(session, request);
  session.state.add_pending({.request_id = request.request_id(),
                             .created_ms = now_unix_ms(),
                             .address = session.server.address(),
                             .store_id = capabilities.store_id(),
                             .request_json = to_json(request)});
  const Submitted submitted = send(session, request);
  return report_submission(session, options, submitted, files);
}

/// A copy of a job on the server. Its inputs are named by their digests.
JobRequest copy_of_job(Session& session, const std::string& id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  JobRequest copy;
  copy.source = id;
  copy.spec = session.server.call(&Jobs::GetJob, request).job().spec();
  copy.spec.clear_not_before();
  copy.spec.clear_depends_on();
  for (v1::Input& input : *copy.spec.mutable_inputs())
    if (!input.digest().empty()) input.clear_from();
  return copy;
}

/// Removes the inputs of the earlier job that local files replace.
void drop_replaced_inputs(JobRequest& request) {
  auto& inputs = *request.spec.mutable_inputs();
  for (const LocalInput& file : request.files)
    inputs.erase(std::remove_if(inputs.begin(), inputs.end(),
                                [&](const v1::Input& input) { return input.slot() == file.slot; }),
                 inputs.end());
}

}  // namespace

ExitStatus resubmit(Session& session, const SubmitOptions& options) {
  std::vector<JobRequest> requests;
  const std::vector<std::string> ids = resolve_job_ids(session, options.job.words);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::string name = options.job.name;
    if (!name.empty() && ids.size() > 1) name += "[" + std::to_string(i) + "]";
    requests.push_back(copy_of_job(session, ids[i]));
    apply_flags(options.job, requests.back(), name);
    add_waits(session, options.job, requests.back().spec);
    drop_replaced_inputs(requests.back());
  }
  check_limits(requests);
  return send_jobs(session, options, requests);
}

ExitStatus submit(Session& session, const SubmitOptions& options) {
  if (!options.forget.empty()) return forget(session, options.forget);
  if (options.resume) {
    if (!options.job.words.empty())
      throw Failure(ExitStatus::kUsage, "--resume repeats pending submissions and takes no files",
                    "first: quasi submit --resume, then submit the new files");
    return resume(session, options);
  }
  std::vector<JobRequest> requests = build_jobs(options.job);
  for (JobRequest& request : requests) add_waits(session, options.job, request.spec);
  check_limits(requests);
  const bool is_overlaid = !options.job.inputs.empty() || !options.job.takes.empty();
  if (!options.job.sweep.empty())
    check_sweep(session, options, requests, is_overlaid);
  else if (!options.no_check)
    check_decks(session, requests, is_overlaid);
  return send_jobs(session, options, requests);
}

}  // namespace quasi::client
