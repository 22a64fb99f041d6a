#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/store/file_system.hpp"

namespace quasi::server {

/// The newest event and fence that were ever committed, in a file beside the database.
///
/// SQLite takes a damaged frame of its write-ahead log for the log's end and drops all commits that
/// follow, silently. The mark is written after each commit and is not synced, so it never runs
/// ahead of the database: if it knows more than the database, acknowledged work was lost.
class NewestMark {
 public:
  struct Newest {
    std::int64_t event = 0;
    std::int64_t fence = 0;
  };

  NewestMark(FileSystem& files, const std::string& root);

  /// Zeros if there is no mark yet, or none that can be read.
  Newest read() const;
  /// A failure is no error: the mark only adds a check.
  void write(const Newest& newest);

 private:
  FileSystem& files_;
  std::string path_;
  std::unique_ptr<FileSystem::File> file_;
};

}  // namespace quasi::server
