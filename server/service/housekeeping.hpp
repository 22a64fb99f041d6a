#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/service/readers.hpp"
#include "server/service/writer.hpp"
#include "server/store/backup/files_lock.hpp"
#include "server/store/blob_store.hpp"

namespace quasi::server {

struct RetentionOptions {
  std::int64_t blob_grace_ms = 24 * 3'600'000LL;   ///< least life of unreferenced blobs
  std::int64_t upload_idle_ms = 24 * 3'600'000LL;  ///< life of broken uploads
  std::int64_t passing_events_ms =
      30 * 86'400'000LL;                       ///< life of progress, log and checkpoint events
  std::int64_t audit_ms = 400 * 86'400'000LL;  ///< life of rows of the audit
  std::int64_t result_retention_ms = 0;  ///< life of ended jobs; 0: until they are deleted by hand
  std::int64_t user_result_bytes = 0;    ///< most bytes of one owner's ended jobs; 0: no limit
  std::int64_t total_result_bytes = 0;   ///< most bytes of all ended jobs; 0: no limit
  std::int64_t result_grace_ms = 86'400'000LL;  ///< least life of ended jobs under these limits
  std::string data_directory = {};  ///< whose FilesLock guards removals; "": nobody else reads
};

/// Removes staging files that belong to no recorded upload. It runs at start before the first write
/// to the database, because on a full disk these files may occupy the space for that write.
void remove_unknown_staging(SqliteStore& store, BlobStore& blobs);

/// Removes the files that the database does not know: staging files and, after a crash, files of
/// the blob store. It runs at start before the first write to the database. Files of the blob store
/// stay if the database is new or has lost commits.
void reconcile_files(SqliteStore& store, BlobStore& blobs, const NewestMark& mark);

/// Removes the files of blobs that are marked as being deleted, then their rows.
void delete_marked_blobs(SqliteStore& store, BlobStore& blobs,
                         const std::vector<std::string>& digests);

/// Deletes jobs that have ended by a rule of the server, and writes the deletion into the audit.
void delete_by_server(WriteContext& write, const std::vector<std::string>& uids,
                      const std::string& reason);

/// The things that one step of a collection removes.
struct Garbage {
  /// Deleted jobs with the attempts whose logs go.
  std::vector<std::pair<RowId, std::vector<std::string>>> jobs;
  std::vector<std::string> blobs;
  std::vector<std::string> uploads;
  bool more = false;        ///< a step was full, so there may be more rows of its kind
  bool files_stay = false;  ///< another process reads the files, so rows alone are removed
  std::unique_ptr<FilesLock> lock = nullptr;  ///< for the removal of files
};

/// The three parts of a step of a collection. The writer runs the first and the last, a file thread
/// the second. A start after a crash between them, or the next collection, finishes the step.
void choose_garbage(WriteContext& write, const RetentionOptions& options, Garbage& found);
void remove_files(const Garbage& found, BlobStore& blobs, LogStore& logs);
void forget_removed(SqliteStore& store, BlobStore& blobs, const Garbage& found);

/// Moves the newest bytes of long and of finished logs from the database into their files: one sync
/// for many appends, and outside of the writer's transaction. The call returns at once; `busy` is
/// true until the work is done.
void fold_logs(Writer& writer, WorkPool& files, LogStore& logs, std::atomic<bool>& busy);
/// The parts of it: the writer runs the first and the last, a file thread writes the bytes.
std::vector<SqliteStore::LogToFold> choose_logs_to_fold(SqliteStore& store);
void forget_folded(SqliteStore& store, const std::vector<SqliteStore::LogToFold>& logs);

/// Finishes interrupted deletions of blobs. It runs at start before the server serves calls.
void finish_deletions(SqliteStore& store, BlobStore& blobs);

/// Deletes jobs that ended too long ago. Removes expired answers, passing events, broken uploads,
/// unreferenced blobs and the logs of deleted jobs. A blob is marked
/// first, then unlinked, then its row is deleted. Files stay while a backup reads them. The work
/// runs in small steps on the writer's thread and a file thread and lets other writes in between.
/// The call itself returns at once.
void collect_garbage(Writer& writer, WorkPool& files, BlobStore& blobs, LogStore& logs,
                     const RetentionOptions& options);

}  // namespace quasi::server
