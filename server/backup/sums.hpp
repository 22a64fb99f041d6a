#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "server/store/file_system.hpp"

/// Begin here: server/backup copies a data directory while its server runs, and makes a new data
/// directory from such a copy. backup.hpp describes the folder of backups, and restore.hpp what
/// changes in a restored store. Nothing here needs a running server.
namespace quasi::server {

/// SHA-256 of files by their names below a folder, as `sha256sum` writes and checks it.
using Sums = std::map<std::string, std::string>;
std::string to_text(const Sums& sums);
/// @throws BadConfiguration naming the line that is no sum
Sums parse_sums(const std::string& text);

/// A backup syncs its bytes in parts of this size. Larger parts hold up the syncs of the server on
/// the same disk: with 8 MiB the slowest of 100 single submissions took three times as long.
constexpr std::int64_t kSyncedBytes = std::int64_t{1} << 18;

/// Source and destination of a copy, and the number of bytes that it takes at most.
struct FileCopy {
  std::string from, to;
  std::int64_t most_bytes = INT64_MAX;    ///< the file is copied up to here
  std::int64_t synced_bytes = INT64_MAX;  ///< the copy is synced in parts of at least this size
};
struct CopiedFile {
  std::string sha256;
  std::int64_t size_bytes = 0;
};
/// Copies a file through `to` + ".part", syncs it and gives it its name. The caller syncs its
/// directory. @throws FileError
CopiedFile copy_file(FileSystem& files, const FileCopy& copy);
/// Hashes a file. @throws FileError
CopiedFile hash_file(FileSystem& files, const std::string& path);

/// Writes a small file through another name, and syncs it. The caller syncs its directory.
void write_text(FileSystem& files, const std::string& path, const std::string& text);
/// @throws FileError
std::string read_text(FileSystem& files, const std::string& path);

/// Makes a directory with its parents below `root`, which exists.
void make_directories(FileSystem& files, const std::string& root, const std::string& relative);

}  // namespace quasi::server
