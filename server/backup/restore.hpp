#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quasi::server {

struct RestoreOptions {
  std::string source;          ///< a folder of backups, i.e. its newest, or one backup in it
  std::string data_directory;  ///< the new data directory; absent or empty
  /// Restores the rest if files of the backup are missing or wrong. They are never served.
  bool without_damaged = false;
};

struct RestoreReport {
  std::string backup;  ///< path of the backup that was restored
  std::string made;    ///< its time in UTC
  std::int64_t jobs = 0;
  std::int64_t unfinished_jobs = 0;
  std::int64_t released_attempts = 0;  ///< those that were running; their jobs wait again
  std::int64_t blobs = 0, blob_bytes = 0;
  std::int64_t fence = 0;  ///< no later grant has this fence or a lower one
  std::vector<std::string> damaged;
};

/// The fence from which a restored store goes on. It is above every fence that the lost store, or
/// another restoration of the same backup, can have granted meanwhile: 2³² above the newest one of
/// the backup, and above 2²² for each second since 2020 (I4).
std::int64_t fence_after_restore(std::int64_t newest_fence, std::int64_t wall_ms);

/// Makes a new data directory from a backup. Every byte is verified while it is copied. The schema
/// is brought to the version of this program, open attempts are released as if
/// each worker had been restarted, and the fence moves on, so that workers of the lost store are
/// fenced. The directory gets its name when it is complete.
/// @throws BadConfiguration if the directory holds anything, or the backup is of a newer version or
///         damaged; FileError, SqliteError
RestoreReport restore(const RestoreOptions& options);

}  // namespace quasi::server
