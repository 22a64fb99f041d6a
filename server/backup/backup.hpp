#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quasi::server {

struct BackupOptions {
  std::string data_directory;
  std::string folder;  ///< where the backups lie; made if it is missing
  /// Copies files even where a second name would do, i.e. in the same file system.
  bool copies = false;
  std::size_t keep = 0;  ///< number of backups that stay; 0: all
  /// Highest rate of reading, so that the calls of the server stay fast; 0: no limit.
  std::int64_t bytes_per_second = 0;
};

struct BackupReport {
  std::string path;  ///< of the new backup
  std::int64_t jobs = 0;
  std::int64_t blobs = 0, blob_bytes = 0;
  std::int64_t new_blobs = 0, new_bytes = 0;  ///< those that earlier backups did not have
  std::vector<std::string> damaged;  ///< digests and logs whose files were missing or wrong
  std::int64_t removed = 0;          ///< older backups that were removed
};

/// Backs a data directory up, while its server runs or not. The backup holds the database of one
/// moment, every file that the database names, logs, and keys. Files that an earlier backup has are
/// not read again. The server removes no file meanwhile. The backup gets its name after everything
/// is synced; a program that was killed leaves the earlier backups as they were.
/// @throws BadConfiguration, AlreadyRunning if another backup writes to the folder, SqliteError,
///         FileError
BackupReport back_up(const BackupOptions& options);

}  // namespace quasi::server
