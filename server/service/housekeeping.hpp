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

/// At start, before anything is served: staging files that no upload remembers are removed, and
/// deletions that were interrupted are finished.
void reconcile_files(SqliteStore& store, BlobStore& blobs);

/// Removes what nothing refers to any more: expired answers, passing events, broken uploads, and
/// unreferenced blobs (marked first, then unlinked, then forgotten). Runs in small steps on the
/// writer's and a file thread; returns at once.
void collect_garbage(Writer& writer, WorkPool& files, BlobStore& blobs,
                     const RetentionOptions& options);

}  // namespace quasi::server
