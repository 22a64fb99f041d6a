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

/// Logs of attempts, logs/<last two characters>/<attempt>.log. The length in the database is the
/// truth. Written by the writer alone, read by anyone; thread-safe.
class LogStore : public LogFiles {
 public:
  LogStore(FileSystem& files, std::string root);

  void write(const std::string& attempt_uid, std::int64_t offset, std::string_view data) override;
  std::string read(const std::string& attempt_uid, std::int64_t offset, std::int64_t size) override;

  /// Before a commit: what was written since the last call is on disk.
  void sync_written();
  /// At start: cuts what was written but not committed.
  void truncate(const std::string& attempt_uid, std::int64_t size);

 private:
  std::string path_of(const std::string& attempt_uid) const;
  std::shared_ptr<FileSystem::File> open(const std::string& attempt_uid, FileSystem::Open mode);

  FileSystem& files_;
  std::string root_;
  std::mutex mutex_;
  /// Open files, most recently used first; at most 256.
  using Entry = std::pair<std::string, std::shared_ptr<FileSystem::File>>;
  std::list<Entry> recent_;
  std::unordered_map<std::string, std::list<Entry>::iterator> by_uid_;
  std::unordered_map<std::string, std::shared_ptr<FileSystem::File>> unsynced_;
  std::set<std::string> unsynced_directories_;
};

}  // namespace quasi::server
