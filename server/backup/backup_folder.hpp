#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/store/backup/database_copy.hpp"
#include "server/store/file_system.hpp"

namespace quasi::server {

/// Description of one backup, the content of BACKUP.json.
struct Manifest {
  std::string made;  ///< time in UTC, as RFC 3339
  std::string version;
  StoreFacts facts;
  std::string sums_sha256;  ///< of SHA256SUMS
  std::int64_t blobs = 0;
  std::int64_t blob_bytes = 0;
  std::vector<std::string> damaged;  ///< digests whose files were missing or wrong
};
std::string to_json(const Manifest& manifest);
/// @throws BadConfiguration if the text is no manifest of a backup
Manifest parse_manifest(const std::string& text);

/// The folder that holds the backups of one server.
///
///   blobs/sha256/ab/cd/<64 hex>   the files of all backups, each stored once
///   2026-11-26T21-38-34Z/         one backup; it gets this name when it is complete
///     quasi.db  logs/  session.key  tls/
///     SHA256SUMS                  of all files beside it
///     BACKUP.json                 what it holds, with the SHA-256 of SHA256SUMS
///   LOCK                          held by the program that writes
///
/// A backup names its blobs in its database; the digest of each is its name. `sha256sum --check
/// SHA256SUMS` verifies the rest without this program.
class BackupFolder {
 public:
  explicit BackupFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  std::string blob_path(const std::string& digest) const;
  /// Names of the complete backups, the oldest first.
  std::vector<std::string> names() const;
  /// @throws BadConfiguration if the backup is not what its sums say
  Manifest manifest_of(const std::string& name) const;

  /// Removes all but the newest `keep` backups, and the blobs that no remaining one names.
  /// @return number of removed backups
  std::int64_t keep_newest(std::size_t keep) const;

 private:
  std::string path_;
};

}  // namespace quasi::server
