#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/service/readers.hpp"
#include "server/service/writer.hpp"
#include "server/store/blob_store.hpp"

namespace quasi::server {

struct RetentionOptions {
  std::int64_t blob_grace_ms = 24 * 3'600'000LL;   ///< least life of unreferenced blobs
  std::int64_t upload_idle_ms = 24 * 3'600'000LL;  ///< life of broken uploads
  std::int64_t passing_events_ms =
      30 * 86'400'000LL;  ///< life of progress, log and checkpoint events
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

/// Finishes interrupted deletions of blobs. It runs at start before the server serves calls.
void finish_deletions(SqliteStore& store, BlobStore& blobs);

/// Removes expired answers, passing events, broken uploads and unreferenced blobs. A blob is marked
/// first, then unlinked, then its row is deleted. The work runs in small steps on the writer's
/// thread and a file thread and lets other writes in between. The call itself returns at once.
void collect_garbage(Writer& writer, WorkPool& files, BlobStore& blobs,
                     const RetentionOptions& options);

}  // namespace quasi::server
