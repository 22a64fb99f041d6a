#pragma once

#include <string>

#include "server/queue/log_files.hpp"
#include "server/store/file_system.hpp"

namespace quasi::server {

/// Logs of attempts in logs/<last two characters>/<attempt>.log. The database knows the length of
/// the part that is in the file, and holds the bytes after it. Thread-safe; one log by one writer
/// at a time.
class LogStore : public LogFiles {
 public:
  LogStore(FileSystem& files, std::string root);

  /// Writes bytes of a log and syncs them, and the name of a new file.
  void write(const std::string& attempt_uid, std::int64_t offset, std::string_view data);
  std::string read(const std::string& attempt_uid, std::int64_t offset, std::int64_t size) override;
  /// Removes the log of an attempt that does not grow any more. A missing file is no error.
  void remove(const std::string& attempt_uid);

 private:
  std::string path_of(const std::string& attempt_uid) const;

  FileSystem& files_;
  std::string root_;
};

}  // namespace quasi::server
