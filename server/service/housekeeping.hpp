#pragma once

#include <cstdint>
#include <memory>

#include "server/service/readers.hpp"
#include "server/service/writer.hpp"
#include "server/store/blob_store.hpp"

namespace quasi::server {

struct RetentionOptions {
  std::int64_t blob_grace_ms = 24 * 3'600'000LL;       ///< unreferenced blobs live at least so long
  std::int64_t upload_idle_ms = 24 * 3'600'000LL;      ///< broken uploads are kept so long
  std::int64_t passing_events_ms = 30 * 86'400'000LL;  ///< progress, log and checkpoint events
};

/// At start, before the database is written to: removes staging files that no upload remembers. On
/// a full disk they may be what the first write needs.
void remove_unknown_staging(SqliteStore& store, BlobStore& blobs);

/// At start, before anything is served: finishes deletions of blobs that were interrupted.
void finish_deletions(SqliteStore& store, BlobStore& blobs);

/// Removes what nothing refers to any more: expired answers, passing events, broken uploads, and
/// unreferenced blobs (marked first, then unlinked, then forgotten). Runs in small steps on the
/// writer's and a file thread until nothing is left, and lets other writes in between; returns at
/// once.
void collect_garbage(Writer& writer, WorkPool& files, BlobStore& blobs,
                     const RetentionOptions& options);

}  // namespace quasi::server
