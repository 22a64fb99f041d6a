#include "workers/daemon/attempt/publication.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "proto/wire/digest.hpp"
#include "proto/wire/limits.hpp"
#include "proto/wire/validate.hpp"
#include "workers/daemon/error.hpp"

namespace quasi {
namespace {

constexpr const char* kManifest = "manifest.json";

/// Builds the text of manifest.json. "content" lists inputs and outputs, and "content_digest" is
/// the digest of "content" alone. "run" describes the run. Keys are sorted. Files that contain
/// timings, such as summary.json, have another digest in each run.
std::string manifest(const v1::Grant& grant, const std::vector<v1::Artifact>& artifacts,
                     const ManifestFacts& facts) {
  const v1::JobSpec& spec = grant.spec();
  nlohmann::json content{{"inputs", nlohmann::json::object()},
                         {"artifacts", nlohmann::json::object()},
                         {"engine_version", facts.engine_version}};
  for (const auto& input : spec.inputs()) content["inputs"][input.slot()] = input.digest();
  for (const auto& artifact : artifacts)
    content["artifacts"][artifact.name()] = {{"digest", artifact.digest()},
                                             {"size_bytes", artifact.size_bytes()}};
  nlohmann::json devices = nlohmann::json::array();
  for (const auto& device : facts.devices)
    devices.push_back({{"model", device.model}, {"uuid_sha256", wire::sha256_hex(device.uuid)}});
  const nlohmann::json document{{"schema", "quasi.manifest.v1"},
                                {"job_id", grant.job_id()},
                                {"attempt", grant.attempt_number()},
                                {"content", content},
                                {"content_digest", wire::sha256_hex(content.dump())},
                                {"run",
                                 {{"devices", devices},
                                  {"wall_seconds", facts.wall_seconds},
                                  {"peak_ram_bytes", facts.peak_ram_bytes}}}};
  return document.dump(2) + "\n";
}

v1::Artifact describe(FileSystem& files, const std::filesystem::path& directory,
                      const std::string& name) {
  v1::Artifact artifact;
  artifact.set_name(name);
  files.sync_file(directory / name);
  artifact.set_digest(files.digest(directory / name));
  artifact.set_size_bytes(files.size_bytes(directory / name));
  artifact.set_media_type(media_type(name));
  return artifact;
}

/// Adds the files of a directory tree, as paths relative to the outputs, and syncs the directories
/// below it. Exports make one directory for each temperature.
void gather(FileSystem& files, const std::filesystem::path& outputs, const std::string& prefix,
            std::vector<std::string>& names) {
  for (const auto& entry : files.list(outputs / prefix)) {
    const std::string name = prefix + entry;
    if (!files.is_directory(outputs / name)) {
      names.push_back(name);
      continue;
    }
    gather(files, outputs, name + "/", names);
    files.sync_directory(outputs / name);
  }
}

/// Returns the task's summary from summary.json. Returns "" if the file is absent or exceeds the
/// limit; it remains an artefact.
std::string summary_text(const FileSystem& files, const std::filesystem::path& path) {
  const auto text = files.read_file(path);
  if (!text) return {};
  const auto document = nlohmann::json::parse(*text, nullptr, false);
  if (!document.is_object() || !document.contains("summary")) return {};
  std::string summary =
      document["summary"].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return summary.size() <= limits::kSummaryBytes ? summary : std::string();
}

Publication publish(FileSystem& files, AttemptStore& store, const v1::Grant& grant,
                    const ManifestFacts& facts) {
  const std::uint64_t fence = grant.attempt().fence();
  if (auto recorded = store.outcome(fence); recorded && recorded->has_succeeded())
    return {.request = std::move(*recorded), .trouble = {}};

  const auto directory = store.paths(fence).outputs;
  // A manifest from a publication that a crash interrupted is written again.
  files.remove_tree(directory / kManifest);
  std::vector<std::string> names;
  gather(files, directory, "", names);
  const auto refuse = [](const std::string& why) {
    return Publication{.request = {}, .trouble = Ending::failed(v1::FAILURE_REASON_PROTOCOL, why)};
  };
  if (names.size() + 1 > limits::kArtifacts)
    return refuse("the engine left " + std::to_string(names.size()) + " files; at most " +
                  std::to_string(limits::kArtifacts - 1) + " are allowed");
  for (const auto& name : names)
    if (!wire::is_relative_path(name, limits::kArtifactNameBytes))
      return refuse(
          "the engine left a file named '" + name +
          "'; each part of a name must match [A-Za-z0-9._-]{1,128} and not begin with a dot");

  Publication publication;
  std::vector<v1::Artifact> artifacts;
  for (const auto& name : names) artifacts.push_back(describe(files, directory, name));
  files.write_file(directory / kManifest, manifest(grant, artifacts, facts));
  artifacts.push_back(describe(files, directory, kManifest));
  files.sync_directory(directory);

  *publication.request.mutable_attempt() = grant.attempt();
  auto* succeeded = publication.request.mutable_succeeded();
  for (auto& artifact : artifacts) *succeeded->add_artifacts() = std::move(artifact);
  succeeded->set_summary_json(summary_text(files, directory / "summary.json"));
  auto* usage = publication.request.mutable_usage();
  usage->set_wall_seconds(facts.wall_seconds);
  usage->set_peak_ram_bytes(static_cast<std::uint64_t>(facts.peak_ram_bytes));
  usage->set_peak_gpu_bytes(static_cast<std::uint64_t>(facts.peak_gpu_bytes));
  const auto n_gpus = std::count_if(facts.devices.begin(), facts.devices.end(),
                                    [](const WorkerDevice& device) { return device.cuda; });
  usage->set_gpu_seconds(facts.wall_seconds * static_cast<double>(n_gpus));
  store.record_outcome(publication.request);
  return publication;
}

}  // namespace

Publication prepare_publication(FileSystem& files, AttemptStore& store, const v1::Grant& grant,
                                const ManifestFacts& facts) {
  try {
    return publish(files, store, grant, facts);
  } catch (const StorageFailure& failure) {
    return {.request = {}, .trouble = Ending::failed(v1::FAILURE_REASON_STORAGE, failure.what())};
  }
}

std::string media_type(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const auto ends = [&](std::string_view suffix) { return name.ends_with(suffix); };
  if (ends(".json")) return "application/json";
  if (ends(".h5")) return "application/x-hdf5";
  if (ends(".txt") || ends(".log") || name.starts_with("BTE.")) return "text/plain";
  if (ends(".csv")) return "text/csv";
  return "application/octet-stream";
}

}  // namespace quasi
