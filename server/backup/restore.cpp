#include "server/backup/restore.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "server/api/local_address.hpp"
#include "server/backup/backup_folder.hpp"
#include "server/backup/sums.hpp"
#include "server/service/queue_engine.hpp"
#include "server/store/blob_store.hpp"
#include "server/store/schema.hpp"

namespace quasi::server {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kStartOf2020_s = 1'577'836'800;
constexpr std::size_t kMostNamed = 8;

/// The folder of a path of the command line, and the backup in it.
std::pair<BackupFolder, std::string> find_backup(const std::string& source) {
  const std::string path = fs::path(source).lexically_normal().string();
  const std::string plain = path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  if (fs::exists(plain + "/BACKUP.json")) {
    const fs::path backup = fs::absolute(plain);
    return {BackupFolder(backup.parent_path().string()), backup.filename().string()};
  }
  if (!fs::is_directory(plain))
    throw BadConfiguration(source + " does not exist; name a folder of backups, or one of them");
  BackupFolder folder(plain);
  const std::vector<std::string> names = folder.names();
  if (names.empty())
    throw BadConfiguration(source + " holds no complete backup; quasi-server backup DIR makes one");
  return {folder, names.back()};
}

void require_room_for_new(const std::string& path) {
  std::error_code error;
  if (fs::exists(path) && !(fs::is_directory(path) && fs::is_empty(path, error)))
    throw BadConfiguration(path +
                           " is not empty, and nothing is overwritten; name another "
                           "--data-directory, or move this one away");
  if (fs::exists(path + ".restoring"))
    throw BadConfiguration(path +
                           ".restoring exists: another restore runs, or one was interrupted; in "
                           "the second case remove that directory");
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) text += "\n  " + names[i];
  if (names.size() > kMostNamed)
    text += "\n  and " + std::to_string(names.size() - kMostNamed) + " more";
  return text;
}

/// One restoration into a directory that has no name yet.
class Restoration {
 public:
  Restoration(const RestoreOptions& options, BackupFolder folder, const std::string& name)
      : options_(options),
        folder_(std::move(folder)),
        backup_(folder_.path_of(name)),
        manifest_(folder_.manifest_of(name)),
        part_(options.data_directory + ".restoring") {
    if (manifest_.facts.schema > schema_version())
      throw BadConfiguration(backup_ + " has schema " + std::to_string(manifest_.facts.schema) +
                             ", and this program knows 1 to " + std::to_string(schema_version()) +
                             "; use quasi-server " + manifest_.version + " or a newer one");
    report_.backup = backup_;
    report_.made = manifest_.made;
  }

  RestoreReport run() {
    if (!files_.make_directory(part_)) throw BadConfiguration(part_ + " exists");
    try {
      copy_files();
      copy_blobs();
      if (!report_.damaged.empty() && !options_.without_damaged)
        throw BadConfiguration(
            std::to_string(report_.damaged.size()) + " files of " + backup_ +
            " are missing or wrong:" + list_of(report_.damaged) +
            "\nRestore another backup, or give --without-damaged to restore the rest");
      begin_anew();
      give_name();
    } catch (...) {
      fs::remove_all(part_);
      throw;
    }
    return report_;
  }

 private:
  void copy_files() {
    for (const auto& [name, sha256] : parse_sums(read_text(files_, backup_ + "/SHA256SUMS"))) {
      const std::size_t slash = name.rfind('/');
      if (slash != std::string::npos) make_directories(files_, part_, name.substr(0, slash));
      std::string found;
      try {
        found = copy_file(files_, {.from = backup_ + "/" + name, .to = part_ + "/" + name}).sha256;
      } catch (const FileError& error) {
        if (!error.is_missing()) throw;
      }
      if (found == sha256) continue;
      if (name == "quasi.db")
        throw BadConfiguration(backup_ + "/quasi.db is missing or damaged; restore another backup");
      files_.remove(part_ + "/" + name);
      report_.damaged.push_back(name);
    }
  }

  void copy_blobs() {
    Database database(part_ + "/quasi.db", Database::Mode::kReader);
    const BlobStore target(files_, part_);
    for (const StoredBlob& blob : present_blobs(database)) {
      const std::string to = target.path_of(blob.digest);
      const std::string relative = to.substr(part_.size() + 1);
      make_directories(files_, part_, relative.substr(0, relative.rfind('/')));
      CopiedFile copied;
      try {
        copied = copy_file(files_, {.from = folder_.blob_path(blob.digest), .to = to});
      } catch (const FileError& error) {
        if (!error.is_missing()) throw;
      }
      if (copied.sha256 != blob.digest || copied.size_bytes != blob.size_bytes) {
        files_.remove(to);
        damaged_blobs_.push_back(blob.digest);
        continue;
      }
      files_.make_read_only(to);
      ++report_.blobs;
      report_.blob_bytes += blob.size_bytes;
    }
    report_.damaged.insert(report_.damaged.end(), damaged_blobs_.begin(), damaged_blobs_.end());
  }

  /// Opens the store as a server would, and writes what makes it a line of its own.
  void begin_anew() {
    const SystemClock clock;
    SystemRandom random;
    LogStore logs(files_, part_);
    QueueEngine engine({.database_path = part_ + "/quasi.db"}, logs, random, QueueOptions(), clock);
    std::exception_ptr failure;
    WriteTask task{.body = [&](WriteContext& write) { write_changes(write); },
                   .done = [&](std::exception_ptr error) { failure = std::move(error); }};
    engine.run_group({&task, 1});
    if (failure) std::rethrow_exception(failure);
    const StoreFacts facts = store_facts(engine.database());
    report_.jobs = facts.jobs;
    report_.unfinished_jobs = facts.unfinished_jobs;
    report_.fence = facts.newest_fence;
    engine.close();
  }

  void write_changes(WriteContext& write) {
    const std::int64_t newest = write.store.newest_fence();
    write.store.raise_fence(fence_after_restore(newest, write.now.wall_ms));
    release_attempts(write);
    for (const std::string& digest : damaged_blobs_)
      write.store.set_blob_state(digest, BlobState::kCorrupt);
    write.audit.append({.time_ms = write.now.wall_ms,
                        .principal = "server",
                        .method = "Restore",
                        .target = backup_,
                        .outcome = "OK",
                        .detail = "made=" + manifest_.made});
  }

  /// Takes every worker for one that was restarted, so that its attempts are released, do not count
  /// and are granted again under new fences. Workers that still run one of them are fenced.
  void release_attempts(WriteContext& write) {
    report_.released_attempts = static_cast<std::int64_t>(write.store.open_attempts().size());
    SystemRandom random;
    for (WorkerRow worker : write.store.workers()) {
      worker.incarnation = make_id('r', write.now.wall_ms, random);
      write.queue.apply(RegisterWorker{.worker = std::move(worker), .devices = {}, .salvage = {}},
                        write.now);
    }
  }

  void give_name() {
    // The backup is the copy of the older schema.
    std::vector<fs::path> directories, older;
    for (const auto& entry : fs::recursive_directory_iterator(part_)) {
      if (entry.is_directory()) directories.push_back(entry.path());
      if (entry.path().filename().string().starts_with("quasi.db.backup-"))
        older.push_back(entry.path());
    }
    for (const fs::path& path : older) fs::remove(path);
    for (const fs::path& path : directories) files_.sync_directory(path.string());
    files_.sync_directory(part_);
    files_.rename(part_, options_.data_directory);
    const fs::path parent = fs::absolute(options_.data_directory).parent_path();
    files_.sync_directory(parent.string());
  }

  const RestoreOptions& options_;
  FileSystem& files_ = system_files();
  BackupFolder folder_;
  std::string backup_;
  Manifest manifest_;
  std::string part_;
  std::vector<std::string> damaged_blobs_;
  RestoreReport report_;
};

}  // namespace

std::int64_t fence_after_restore(std::int64_t newest_fence, std::int64_t wall_ms) {
  const std::int64_t seconds = std::max<std::int64_t>(0, wall_ms / 1'000 - kStartOf2020_s);
  return std::max(newest_fence + (std::int64_t{1} << 32), seconds << 22);
}

RestoreReport restore(const RestoreOptions& options) {
  require_room_for_new(options.data_directory);
  auto [folder, name] = find_backup(options.source);
  return Restoration(options, std::move(folder), name).run();
}

}  // namespace quasi::server
