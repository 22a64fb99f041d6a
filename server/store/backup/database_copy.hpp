#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "server/store/sqlite.hpp"

/// Begin here: server/store/backup reads and writes databases for server/backup.
namespace quasi::server {

/// Writes the database at `from` as it is at one moment to the new file `to`, while a server may go
/// on writing it. The reading of that moment keeps the server's write-ahead log from starting
/// again, and delays no call. The copy has no write-ahead log of its own and is not synced.
/// @param after_bytes  called after each piece of about 1 MiB with its size; it may sleep
/// @throws SqliteError, also if the copy is damaged or has rows that refer to missing rows
void copy_database(const std::string& from, const std::string& to,
                   const std::function<void(std::int64_t)>& after_bytes);

/// Facts of a database that its backup states.
struct StoreFacts {
  std::int32_t schema = 0;
  std::string store_id;
  std::int64_t jobs = 0;
  std::int64_t unfinished_jobs = 0;
  std::int64_t open_attempts = 0;
  std::int64_t newest_event = 0;
  std::int64_t newest_fence = 0;
};
/// @throws SqliteError, also if the file is no database of this program
StoreFacts store_facts(Database& database);

struct StoredBlob {
  std::string digest;
  std::int64_t size_bytes = 0;
};
/// The files of blobs that are present, by their digests.
std::vector<StoredBlob> present_blobs(Database& database);

struct StoredLog {
  std::string attempt_uid;
  std::int64_t size_bytes = 0;  ///< of the part that is in the file
};
/// The logs that have a file.
std::vector<StoredLog> logs_in_files(Database& database);

/// Notes that the files of these blobs are damaged, so that they are never served.
void mark_damaged(Database& database, const std::vector<std::string>& digests);

}  // namespace quasi::server
