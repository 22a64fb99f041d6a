#include "client/views/outcome.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/views/job_view.hpp"
#include "client/views/readable.hpp"
#include "proto/wire/digest.hpp"

namespace quasi::client {
namespace {

constexpr const char* kTableArtifact = "table.txt";
constexpr std::uint64_t kTableLimitBytes = 1 << 20;

/// Fetches a small blob as a whole and verifies it.
std::string read_blob(Session& session, const v1::Artifact& artifact) {
  grpc::ClientContext context;
  context.set_deadline(
      std::chrono::system_clock::now() +
      std::chrono::milliseconds(static_cast<std::int64_t>(session.server.timeout_s() * 1e3)));
  const interrupt::Scope cancel([&context] { context.TryCancel(); });
  v1::ReadBlobRequest request;
  request.set_digest(artifact.digest());
  const auto reader = session.server.blobs().ReadBlob(&context, request);
  v1::ReadBlobResponse part;
  std::string bytes;
  while (reader->Read(&part) && bytes.size() <= kTableLimitBytes) bytes += part.data();
  if (bytes.size() > kTableLimitBytes) context.TryCancel();
  const grpc::Status status = reader->Finish();
  if (!status.ok()) throw session.server.refused(status);
  if (wire::sha256_hex(bytes) != artifact.digest())
    throw Failure(ExitStatus::kDataIntegrity,
                  "the bytes of " + artifact.name() + " do not hash to its digest",
                  "try again; if that does not help, tell the server's operator");
  return bytes;
}

}  // namespace

ExitStatus status_of_jobs(const std::vector<v1::Job>& jobs) {
  std::size_t succeeded = 0;
  std::size_t failed = 0;
  std::size_t cancelled = 0;
  for (const v1::Job& job : jobs) {
    if (job.state() == v1::JOB_STATE_SUCCEEDED) ++succeeded;
    if (job.state() == v1::JOB_STATE_FAILED) ++failed;
    if (job.state() == v1::JOB_STATE_CANCELLED) ++cancelled;
  }
  if (failed + cancelled == 0) return ExitStatus::kOk;
  if (succeeded > 0) return ExitStatus::kPartial;
  return failed > 0 ? ExitStatus::kJobFailed : ExitStatus::kJobCancelled;
}

Outcome fetch_outcome(Session& session, const std::string& job_id) {
  v1::GetJobRequest request;
  request.set_job_id(job_id);
  Outcome outcome{.job = session.server.call(&Jobs::GetJob, request).job(), .table = {}};
  for (const v1::Artifact& artifact : outcome.job.artifacts())
    if (artifact.name() == kTableArtifact && artifact.size_bytes() <= kTableLimitBytes)
      outcome.table = read_blob(session, artifact);
  return outcome;
}

std::string outcome_text(const Console& console, const Outcome& outcome, bool has_heading) {
  const v1::Job& job = outcome.job;
  std::string text;
  if (has_heading) {
    text += console.paint(Colour::kBold, job.id());
    if (!job.spec().name().empty()) text += "  " + printable(job.spec().name());
    text += "  " + console.paint(colour_of(job.state()), state_word(job.state())) + "\n";
  }
  if (job.state() == v1::JOB_STATE_SUCCEEDED) {
    std::string table =
        outcome.table.empty() ? summary_text(job.summary_json()) : printable(outcome.table);
    if (!table.empty() && table.back() != '\n') table += '\n';
    text += table;
  } else if (job.has_failure() && job.state() == v1::JOB_STATE_FAILED) {
    text += printable(failure_text(job.failure())) + "\n";
  }
  return text;
}

std::string summary_text(const std::string& summary_json) {
  const Json summary = Json::parse(summary_json, nullptr, false);
  if (!summary.is_object()) return "";
  std::string text;
  std::size_t width = 0;
  for (const auto& [key, value] : summary.items()) width = std::max(width, display_width(key));
  for (const auto& [key, value] : summary.items()) {
    std::string shown = value.is_string()
                            ? value.get<std::string>()
                            : value.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (shown.size() > 100) continue;
    std::string name = key;
    name.resize(std::max(width, name.size()), ' ');
    text += printable(name + "  " + shown) + "\n";
  }
  return text;
}

}  // namespace quasi::client
