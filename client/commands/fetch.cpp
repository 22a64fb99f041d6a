#include "client/commands/fetch.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "client/input/job_ids.hpp"
#include "client/session/durable_file.hpp"
#include "client/views/job_view.hpp"
#include "client/views/readable.hpp"
#include "client/views/transfer_bar.hpp"
#include "proto/wire/chunks.hpp"
#include "proto/wire/digest.hpp"
#include "proto/wire/limits.hpp"
#include "proto/wire/validate.hpp"
#include "workers/io/settings.hpp"

namespace quasi::client {
namespace {

namespace fs = std::filesystem;

std::vector<v1::Artifact> all_artifacts(Session& session, const std::string& job_id) {
  std::vector<v1::Artifact> artifacts;
  v1::ListArtifactsRequest request;
  request.set_job_id(job_id);
  request.set_page_size(1000);
  while (true) {
    const v1::ListArtifactsResponse page = session.server.call(&Jobs::ListArtifacts, request);
    artifacts.insert(artifacts.end(), page.artifacts().begin(), page.artifacts().end());
    if (page.next_page_token().empty()) return artifacts;
    request.set_page_token(page.next_page_token());
  }
}

void refuse_unfinished(const v1::Job& job) {
  if (job.state() == v1::JOB_STATE_SUCCEEDED) return;
  const std::string what =
      "job " + job.id() + " is " + state_word(job.state()) + " and has no results";
  const std::string remedy =
      !is_final(job.state()) ? "wait for it: quasi wait " + job.id()
      : job.state() == v1::JOB_STATE_FAILED
          ? "see the reason: quasi show " + job.id() + ", quasi logs " + job.id()
          : "run it again: quasi resubmit " + job.id();
  throw Failure(ExitStatus::kConflict, what, remedy);
}

std::vector<v1::Artifact> chosen(const std::vector<v1::Artifact>& all,
                                 const std::vector<std::string>& names, const std::string& job_id) {
  if (names.empty()) return all;
  std::vector<v1::Artifact> picked;
  std::vector<std::string> known;
  for (const v1::Artifact& artifact : all) known.push_back(artifact.name());
  for (const std::string& name : names) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const v1::Artifact& artifact) {
      return artifact.name() == name;
    });
    if (found == all.end()) {
      const std::string nearest = nearest_name(name, known);
      std::string list;
      for (const std::string& each : known) list += (list.empty() ? "" : ", ") + each;
      throw Failure(ExitStatus::kNotFound,
                    "job " + job_id + " has no result file '" + name + "'" +
                        (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"),
                    list.empty() ? "it has no result files" : "its files: " + list);
    }
    picked.push_back(*found);
  }
  return picked;
}

/// The inputs of a job in the form of result files, named by their slots.
std::vector<v1::Artifact> inputs_of(const v1::Job& job) {
  std::vector<v1::Artifact> files;
  for (const v1::Input& input : job.spec().inputs()) {
    if (input.digest().empty()) continue;  // another job has not made it yet
    v1::Artifact& file = files.emplace_back();
    file.set_name(input.slot());
    file.set_digest(input.digest());
    file.set_size_bytes(input.size_bytes());
  }
  return files;
}

/// The files that the options ask for. Inputs are there in every state of the job.
std::vector<v1::Artifact> wanted_files(Session& session, const FetchOptions& options,
                                       const std::string& id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  const v1::Job job = session.server.call(&Jobs::GetJob, request).job();
  if (options.inputs) return chosen(inputs_of(job), options.artifacts, id);
  refuse_unfinished(job);
  return chosen(all_artifacts(session, id), options.artifacts, id);
}

enum class Already { kAbsent, kSame, kOther };

Already look(const fs::path& path, const v1::Artifact& artifact) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return Already::kAbsent;
  if (!fs::is_regular_file(status)) return Already::kOther;
  if (fs::file_size(path, error) != artifact.size_bytes() || error) return Already::kOther;
  try {
    return wire::digest_file(path).digest == artifact.digest() ? Already::kSame : Already::kOther;
  } catch (const std::system_error& failure) {
    throw Failure(ExitStatus::kLocalFile, failure.what(), "check that the file can be read");
  }
}

/// Fetches one file. @return true if it was transferred, false if it was already present.
bool fetch_one(Session& session, const v1::Artifact& artifact, const fs::path& path, bool force) {
  // The server promises valid names, but a path from another machine is checked before it is used.
  if (!wire::is_relative_path(artifact.name(), limits::kArtifactNameBytes))
    throw Failure(ExitStatus::kDataIntegrity,
                  "the server sent the file name '" + artifact.name() + "', which is not allowed",
                  "tell the server's operator");
  const Already already = look(path, artifact);
  if (already == Already::kSame) return false;
  if (already == Already::kOther && !force)
    throw Failure(ExitStatus::kConflict, "'" + path.string() + "' exists and differs",
                  "choose another directory with -d, or replace it with --force");
  make_directory(path.parent_path(), Access::kUmask);
  TransferBar bar(session.console, "fetching", artifact.name());
  wire::TransferOptions options;
  options.on_progress = [&](std::uint64_t done, std::uint64_t total) { bar.show(done, total); };
  options.cancelled = [] { return interrupt::requested(); };
  options.attempts = 20;
  const grpc::Status status = wire::download_file(session.server.channel(), artifact.digest(),
                                                  artifact.size_bytes(), path, options);
  bar.clear();
  if (interrupt::requested())
    throw Failure(
        static_cast<ExitStatus>(interrupt::exit_status()), "interrupted",
        "the received bytes are kept in '" + path.string() + ".part'; the same command continues");
  if (!status.ok()) {
    Failure failure = session.server.refused(status);
    if (failure.status == ExitStatus::kUnreachable)
      failure.remedy =
          "the received bytes are kept in '" + path.string() + ".part'; the same command continues";
    if (failure.status == ExitStatus::kLocalFile)
      throw Failure(failure.status, "'" + path.string() + ".part': " + failure.what(),
                    failure.remedy);
    throw failure;
  }
  return true;
}

/// Prints one line about a file that is present, in the requested format.
void print_file(Console& console, const Json& file, const v1::Artifact& artifact, bool moved) {
  const std::string path = file.at("path");
  if (console.format() == Format::kJsonl)
    console.record(file);
  else if (console.format() == Format::kName)
    console.data(path + "\n");
  else if (!console.json())
    console.data(path + "  " + readable_bytes(artifact.size_bytes()) + "  " +
                 console.paint(Colour::kGreen, moved ? "ok" : "ok (was here)") + "\n");
}

}  // namespace

ExitStatus fetch(Session& session, const FetchOptions& options) {
  const std::vector<std::string> ids = resolve_job_ids(session, options.jobs);
  Console& console = session.console;
  Json document{{"jobs", Json::array()}};
  std::size_t failed = 0;
  std::optional<Failure> first;
  for (const std::string& id : ids) {
    const fs::path directory =
        options.directory.empty()
            ? fs::path(id)
            : (ids.size() > 1 ? fs::path(options.directory) / id : fs::path(options.directory));
    Json files = Json::array();
    try {
      const auto artifacts = wanted_files(session, options, id);
      make_directory(directory, Access::kUmask);
      for (const v1::Artifact& artifact : artifacts) {
        const fs::path path = directory / artifact.name();
        const bool moved = fetch_one(session, artifact, path, options.force);
        Json file = artifact_json(artifact);
        file["path"] = path.string();
        file["moved"] = moved;
        if (!options.silent) print_file(console, file, artifact, moved);
        files.push_back(std::move(file));
      }
    } catch (const Failure& failure) {
      // With several jobs the remaining ones are still fetched. A signal ends all of them.
      if (ids.size() == 1 || interrupt::requested()) throw;
      session.console.warn(std::string(failure.what()) +
                           (failure.remedy.empty() ? "" : "; " + failure.remedy));
      if (!first) first = failure;
      ++failed;
    }
    document["jobs"].push_back({{"id", id}, {"directory", directory.string()}, {"files", files}});
  }
  if (first && failed == ids.size()) throw *first;
  if (console.format() == Format::kJson && !options.silent) console.document(document);
  return failed > 0 ? ExitStatus::kPartial : ExitStatus::kOk;
}

}  // namespace quasi::client
