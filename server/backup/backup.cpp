#include "server/backup/backup.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <set>
#include <thread>

#include "proto/wire/digest.hpp"
#include "server/api/local_address.hpp"
#include "server/backup/backup_folder.hpp"
#include "server/backup/sums.hpp"
#include "server/queue/clock.hpp"
#include "server/store/backup/files_lock.hpp"
#include "server/store/blob_store.hpp"
#include "server/store/data_directory.hpp"
#include "server/store/schema.hpp"

namespace quasi::server {
namespace {

namespace fs = std::filesystem;

std::string utc(const char* format, std::int64_t wall_ms) {
  const auto seconds = static_cast<std::time_t>(wall_ms / 1'000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

/// Sleeps so that the bytes that were read stay below a rate.
class Pace {
 public:
  explicit Pace(std::int64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}
  void read(std::int64_t bytes) {
    if (bytes_per_second_ <= 0) return;
    bytes_ += bytes;
    std::this_thread::sleep_until(
        begun_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                     static_cast<double>(bytes_) / static_cast<double>(bytes_per_second_))));
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t bytes_per_second_;
  std::int64_t bytes_ = 0;
  Clock::time_point begun_ = Clock::now();
};

/// Holds the lock of a folder of backups, so that one program writes to it.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder) {
    const std::string path = folder + "/LOCK";
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor_ < 0) throw FileError(errno, "open " + path);
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
    ::close(descriptor_);
    throw AlreadyRunning("another backup writes to " + folder + "; wait for its end");
  }
  ~FolderLock() { ::close(descriptor_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

void prepare_folder(const std::string& data, const std::string& folder) {
  FileSystem& files = system_files();
  if (!files.exists(data + "/quasi.db"))
    throw BadConfiguration(data +
                           "/quasi.db does not exist; --data-directory or --config names "
                           "another data directory");
  files.make_directory(folder);
  const fs::path inside = fs::canonical(folder).lexically_relative(fs::canonical(data));
  if (!inside.empty() && *inside.begin() != "..")
    throw BadConfiguration(folder + " lies in the data directory " + data +
                           "; choose a folder on another disk");
}

/// One run of a backup.
class Run {
 public:
  explicit Run(const BackupOptions& options)
      : options_(options), folder_(options.folder), pace_(options.bytes_per_second) {}

  BackupReport back_up() {
    prepare_folder(options_.data_directory, folder_.path());
    const FolderLock lock(folder_.path());
    remove_parts();
    choose_name();
    {
      const auto files_stay = FilesLock::for_reading(options_.data_directory);
      copy_database_first();
      take_blobs();
      take_logs();
      take_keys();
    }
    seal();
    if (options_.keep > 0) report_.removed = folder_.keep_newest(options_.keep);
    return report_;
  }

 private:
  /// Removes what earlier runs left that did not end.
  void remove_parts() {
    for (const std::string& name : files_.list(folder_.path()))
      if (name.ends_with(".part")) fs::remove_all(folder_.path_of(name));
  }

  void choose_name() {
    const std::vector<std::string> names = folder_.names();
    if (!names.empty()) previous_ = names.back();
    const std::int64_t now_ms = SystemClock().now().wall_ms;
    manifest_.made = utc("%Y-%m-%dT%H:%M:%SZ", now_ms);
    const std::string stem = utc("%Y-%m-%dT%H-%M-%SZ", now_ms);
    name_ = stem;
    for (int n = 2; files_.exists(folder_.path_of(name_)); ++n)
      name_ = stem + "-" + std::to_string(n);
    part_ = folder_.path_of(name_) + ".part";
    report_.path = folder_.path_of(name_);
    files_.make_directory(part_);
    for (const char* name : {"/blobs", "/blobs/sha256"})
      files_.make_directory(folder_.path() + name);
  }

  void copy_database_first() {
    const std::string path = options_.data_directory + "/quasi.db";
    {
      Database source(path, Database::Mode::kReader);
      const std::int32_t schema = store_facts(source).schema;
      if (schema != schema_version())
        throw BadConfiguration(
            path + " has schema " + std::to_string(schema) + ", and this program backs up schema " +
            std::to_string(schema_version()) + "; use the version of quasi-server that wrote it");
    }
    const auto database_bytes = static_cast<std::int64_t>(fs::file_size(path));
    const auto room = static_cast<std::int64_t>(fs::space(folder_.path()).available);
    if (room < database_bytes + database_bytes / 4)
      throw FileError(ENOSPC, folder_.path() + " has " + std::to_string(room >> 20) +
                                  " MiB free, and the database alone takes " +
                                  std::to_string(database_bytes >> 20) +
                                  " MiB; free space, or let --keep remove older backups");
    // The bytes go to the disk in small parts. One large sync at the end would hold up those of the
    // server.
    const std::string copy = part_ + "/quasi.db";
    std::unique_ptr<FileSystem::File> file;
    std::int64_t unsynced = 0;
    copy_database(path, copy, [&](std::int64_t bytes) {
      pace_.read(bytes);
      unsynced += bytes;
      if (unsynced < kSyncedBytes) return;
      if (!file) file = files_.open(copy, FileSystem::Open::kRead);
      file->sync();
      unsynced = 0;
    });
  }

  /// Gives the folder a blob that it does not have. @return false if the file is missing or wrong
  bool take_blob(const BlobStore& blobs, const StoredBlob& blob) {
    const std::string from = blobs.path_of(blob.digest), to = folder_.blob_path(blob.digest);
    const std::string relative = to.substr(folder_.path().size() + 1);
    make_directories(files_, folder_.path(), relative.substr(0, relative.rfind('/')));
    CopiedFile taken;
    bool is_copy = options_.copies;
    const std::string part = to + ".part";
    try {
      files_.remove(part);
      std::error_code cannot_link;
      if (!is_copy) fs::create_hard_link(from, part, cannot_link);
      is_copy = is_copy || cannot_link;
      taken = is_copy ? copy_file(files_, {.from = from, .to = part, .synced_bytes = kSyncedBytes})
                      : hash_file(files_, part);
    } catch (const FileError& error) {
      if (!error.is_missing()) throw;
      return false;
    }
    pace_.read(taken.size_bytes);
    if (taken.sha256 != blob.digest || taken.size_bytes != blob.size_bytes) {
      files_.remove(part);
      return false;
    }
    if (is_copy) files_.make_read_only(part);
    files_.rename(part, to);
    changed_directories_.insert(to.substr(0, to.rfind('/')));
    ++report_.new_blobs;
    report_.new_bytes += blob.size_bytes;
    return true;
  }

  void take_blobs() {
    const BlobStore blobs(files_, options_.data_directory);
    Database copy(part_ + "/quasi.db", Database::Mode::kWriter);
    manifest_.facts = store_facts(copy);
    for (const StoredBlob& blob : present_blobs(copy)) {
      // A file of the folder was hashed when it came, and never changes.
      std::error_code absent;
      const auto size = fs::file_size(folder_.blob_path(blob.digest), absent);
      const bool is_there = !absent && static_cast<std::int64_t>(size) == blob.size_bytes;
      if (!is_there && !take_blob(blobs, blob)) {
        manifest_.damaged.push_back(blob.digest);
        continue;
      }
      ++manifest_.blobs;
      manifest_.blob_bytes += blob.size_bytes;
    }
    if (!manifest_.damaged.empty()) mark_damaged(copy, manifest_.damaged);
    logs_ = logs_in_files(copy);
  }

  /// Takes the logs. One that has not grown since the previous backup gets a second name.
  void take_logs() {
    const Sums old =
        previous_.empty()
            ? Sums()
            : parse_sums(read_text(files_, folder_.path_of(previous_) + "/SHA256SUMS"));
    files_.make_directory(part_ + "/logs");
    for (const StoredLog& log : logs_) {
      const std::string& uid = log.attempt_uid;
      const std::string branch = "logs/" + uid.substr(uid.size() - 2);
      const std::string name = branch + "/" + uid + ".log";
      make_directories(files_, part_, branch);
      const auto known = old.find(name);
      std::error_code error;
      if (known != old.end()) {
        const std::string before = folder_.path_of(previous_) + "/" + name;
        const bool is_equal =
            static_cast<std::int64_t>(fs::file_size(before, error)) == log.size_bytes && !error;
        if (is_equal) fs::create_hard_link(before, part_ + "/" + name, error);
        if (is_equal && !error) {
          sums_[name] = known->second;
          continue;
        }
      }
      take_log(name, log.size_bytes);
    }
  }

  void take_log(const std::string& name, std::int64_t size_bytes) {
    try {
      const CopiedFile copied = copy_file(files_, {.from = options_.data_directory + "/" + name,
                                                   .to = part_ + "/" + name,
                                                   .most_bytes = size_bytes});
      pace_.read(copied.size_bytes);
      sums_[name] = copied.sha256;
      if (copied.size_bytes < size_bytes) report_.damaged.push_back(name);
    } catch (const FileError& error) {
      if (!error.is_missing()) throw;
      report_.damaged.push_back(name);
    }
  }

  /// Takes the keys without which clients, workers and Unix sockets would have to begin anew.
  void take_keys() {
    std::vector<std::string> names{"session.key"};
    if (files_.exists(options_.data_directory + "/tls")) {
      files_.make_directory(part_ + "/tls");
      for (const std::string& name : files_.list(options_.data_directory + "/tls"))
        if (!name.ends_with(".part")) names.push_back("tls/" + name);
    }
    for (const std::string& name : names) {
      const std::string from = options_.data_directory + "/" + name;
      if (files_.exists(from))
        sums_[name] = copy_file(files_, {.from = from, .to = part_ + "/" + name}).sha256;
    }
  }

  /// Syncs everything and gives the backup its name.
  void seal() {
    const std::string database = part_ + "/quasi.db";
    files_.open(database, FileSystem::Open::kReadWrite)->sync();
    sums_["quasi.db"] = hash_file(files_, database).sha256;
    const std::string sums = to_text(sums_);
    manifest_.version = QUASI_VERSION;
    manifest_.sums_sha256 = wire::sha256_hex(sums);
    write_text(files_, part_ + "/SHA256SUMS", sums);
    write_text(files_, part_ + "/BACKUP.json", to_json(manifest_));
    for (const std::string& directory : changed_directories_) files_.sync_directory(directory);
    for (const auto& entry : fs::recursive_directory_iterator(part_))
      if (entry.is_directory()) files_.sync_directory(entry.path().string());
    for (const auto& entry : fs::directory_iterator(folder_.path() + "/blobs/sha256"))
      files_.sync_directory(entry.path().string());
    for (const std::string& directory :
         {folder_.path() + "/blobs/sha256", folder_.path() + "/blobs", part_})
      files_.sync_directory(directory);
    files_.rename(part_, folder_.path_of(name_));
    files_.sync_directory(folder_.path());
    report_.jobs = manifest_.facts.jobs;
    report_.blobs = manifest_.blobs;
    report_.blob_bytes = manifest_.blob_bytes;
    report_.damaged.insert(report_.damaged.end(), manifest_.damaged.begin(),
                           manifest_.damaged.end());
  }

  const BackupOptions& options_;
  BackupFolder folder_;
  FileSystem& files_ = system_files();
  Pace pace_;
  std::string name_, part_, previous_;
  std::vector<StoredLog> logs_;
  Sums sums_;
  Manifest manifest_;
  std::set<std::string> changed_directories_;
  BackupReport report_;
};

}  // namespace

BackupReport back_up(const BackupOptions& options) { return Run(options).back_up(); }

}  // namespace quasi::server
