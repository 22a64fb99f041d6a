#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/store/file_system.hpp"

namespace quasi::server {

/// The newest event and fence that were ever committed, in a file beside the database.
///
/// SQLite takes a damaged frame of its write-ahead log for the end of the log and silently drops
/// all commits after it. The mark is written after each commit and is not synced, so it is never
/// newer than an intact database. If it is newer, the database has lost acknowledged work.
class NewestMark {
 public:
  struct Newest {
    std::int64_t event = 0;
    std::int64_t fence = 0;
  };

  NewestMark(FileSystem& files, const std::string& root);

  /// Reads the mark; zeros if it is missing or unreadable.
  Newest read() const;
  /// Writes the mark. A failure is ignored, because the mark only adds a check.
  void write(const Newest& newest);

 private:
  FileSystem& files_;
  std::string path_;
  std::unique_ptr<FileSystem::File> file_;
};

}  // namespace quasi::server
