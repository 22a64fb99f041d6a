#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "server/queue/log_files.hpp"
#include "server/store/file_system.hpp"

namespace quasi::server {

/// Logs of attempts in logs/<last two characters>/<attempt>.log. The length in the database is the
/// valid one. Only the writer writes; any thread may read. Thread-safe.
class LogStore : public LogFiles {
 public:
  LogStore(FileSystem& files, std::string root);

  void write(const std::string& attempt_uid, std::int64_t offset, std::string_view data) override;
  std::string read(const std::string& attempt_uid, std::int64_t offset, std::int64_t size) override;

  /// Syncs the bytes written since the last call. It is called before a commit.
  void sync_written();
  /// Cuts bytes that were written but not committed. It is called at start.
  void truncate(const std::string& attempt_uid, std::int64_t size);
  /// Removes the log of an attempt that does not grow any more. A missing file is no error.
  void remove(const std::string& attempt_uid);

 private:
  std::string path_of(const std::string& attempt_uid) const;
  std::shared_ptr<FileSystem::File> open(const std::string& attempt_uid, FileSystem::Open mode);

  FileSystem& files_;
  std::string root_;
  std::mutex mutex_;
  /// Open files, at most 256, the most recently used first.
  using Entry = std::pair<std::string, std::shared_ptr<FileSystem::File>>;
  std::list<Entry> recent_;
  std::unordered_map<std::string, std::list<Entry>::iterator> by_uid_;
  std::unordered_map<std::string, std::shared_ptr<FileSystem::File>> unsynced_;
  std::set<std::string> unsynced_directories_;
};

}  // namespace quasi::server
