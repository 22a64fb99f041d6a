#include "server/backup/backup_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "proto/wire/digest.hpp"
#include "server/api/local_address.hpp"
#include "server/backup/sums.hpp"

namespace quasi::server {
namespace {

namespace fs = std::filesystem;

constexpr char kFormat[] = "quasi-backup-1";

/// "2026-11-26T21-38-34Z", and "…-2" for a second one in the same second.
bool is_backup_name(const std::string& name) {
  return name.size() >= 20 && name[4] == '-' && name[10] == 'T' && name[19] == 'Z' &&
         !name.ends_with(".part");
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  const nlohmann::ordered_json json = {{"format", kFormat},
                                       {"made", manifest.made},
                                       {"version", manifest.version},
                                       {"schema", manifest.facts.schema},
                                       {"store_id", manifest.facts.store_id},
                                       {"jobs", manifest.facts.jobs},
                                       {"unfinished_jobs", manifest.facts.unfinished_jobs},
                                       {"open_attempts", manifest.facts.open_attempts},
                                       {"newest_event", manifest.facts.newest_event},
                                       {"newest_fence", manifest.facts.newest_fence},
                                       {"blobs", manifest.blobs},
                                       {"blob_bytes", manifest.blob_bytes},
                                       {"damaged_blobs", manifest.damaged},
                                       {"sums_sha256", manifest.sums_sha256}};
  return json.dump(2) + "\n";
}

Manifest parse_manifest(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("format") != kFormat)
      throw BadConfiguration("BACKUP.json has the format " + json.at("format").dump() +
                             ", and this program reads \"" + kFormat +
                             "\"; use the version of quasi-server that made the backup");
    Manifest manifest;
    json.at("made").get_to(manifest.made);
    json.at("version").get_to(manifest.version);
    json.at("schema").get_to(manifest.facts.schema);
    json.at("store_id").get_to(manifest.facts.store_id);
    json.at("jobs").get_to(manifest.facts.jobs);
    json.at("unfinished_jobs").get_to(manifest.facts.unfinished_jobs);
    json.at("open_attempts").get_to(manifest.facts.open_attempts);
    json.at("newest_event").get_to(manifest.facts.newest_event);
    json.at("newest_fence").get_to(manifest.facts.newest_fence);
    json.at("blobs").get_to(manifest.blobs);
    json.at("blob_bytes").get_to(manifest.blob_bytes);
    json.at("damaged_blobs").get_to(manifest.damaged);
    json.at("sums_sha256").get_to(manifest.sums_sha256);
    return manifest;
  } catch (const nlohmann::json::exception& error) {
    throw BadConfiguration(std::string("BACKUP.json cannot be read (") + error.what() +
                           "); use another backup");
  }
}

std::string BackupFolder::blob_path(const std::string& digest) const {
  return path_ + "/blobs/sha256/" + digest.substr(0, 2) + "/" + digest.substr(2, 2) + "/" + digest;
}

std::vector<std::string> BackupFolder::names() const {
  std::vector<std::string> names;
  for (const std::string& name : system_files().list(path_))
    if (is_backup_name(name)) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

Manifest BackupFolder::manifest_of(const std::string& name) const {
  FileSystem& files = system_files();
  Manifest manifest = parse_manifest(read_text(files, path_of(name) + "/BACKUP.json"));
  if (wire::sha256_hex(read_text(files, path_of(name) + "/SHA256SUMS")) != manifest.sums_sha256)
    throw BadConfiguration(path_of(name) +
                           "/SHA256SUMS is not the file of this backup; use another backup");
  return manifest;
}

std::int64_t BackupFolder::keep_newest(std::size_t keep) const {
  std::vector<std::string> all = names();
  if (all.size() <= keep) return 0;
  const auto n_old = static_cast<std::ptrdiff_t>(all.size() - keep);
  // A backup loses its name before its files, so that a crash leaves none that is incomplete.
  for (auto name = all.begin(); name != all.begin() + n_old; ++name) {
    fs::rename(path_of(*name), path_of(*name) + ".part");
    fs::remove_all(path_of(*name) + ".part");
  }
  std::set<std::string> needed;
  for (auto name = all.begin() + n_old; name != all.end(); ++name) {
    Database database(path_of(*name) + "/quasi.db", Database::Mode::kReader);
    for (StoredBlob& blob : present_blobs(database)) needed.insert(std::move(blob.digest));
  }
  std::vector<fs::path> unneeded;
  for (const auto& entry : fs::recursive_directory_iterator(path_ + "/blobs"))
    if (entry.is_regular_file() && !needed.contains(entry.path().filename().string()))
      unneeded.push_back(entry.path());
  for (const fs::path& path : unneeded) fs::remove(path);
  return n_old;
}

}  // namespace quasi::server
