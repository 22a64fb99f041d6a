#include "server/service/housekeeping.hpp"

#include <set>
#include <string>
#include <vector>

#include "server/service/log.hpp"

namespace quasi::server {
namespace {

constexpr std::int32_t kStep = 256;

struct Found {
  std::vector<std::string> blobs;
  std::vector<std::string> uploads;
  bool more = false;  ///< a step was full, so there may be more rows of its kind
};

void report(const std::exception_ptr& error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& failure) {
    log(Level::kWarning, "garbage_collection_failed", {{"what", failure.what()}});
  }
}

}  // namespace

void remove_unknown_staging(SqliteStore& store, BlobStore& blobs) {
  std::set<std::string> known;
  for (const UploadRow& upload : store.uploads()) known.insert(upload.upload_id);
  for (const std::string& name : blobs.staged())
    if (known.count(name) == 0) blobs.remove_staging(name);
}

void reconcile_files(SqliteStore& store, BlobStore& blobs, const NewestMark& mark) {
  remove_unknown_staging(store, blobs);
  // After a proper end no file lacks a row. A database that is new or has lost commits does not
  // know which files belong to it.
  if (store.meta("epoch").empty() || store.meta("clean_shutdown") == "1" ||
      mark.read().event > store.newest_event())
    return;
  std::int64_t removed = 0;
  for (const std::string& digest : blobs.stored()) {
    if (store.blob_state(digest)) continue;
    blobs.remove(digest);
    ++removed;
  }
  if (removed > 0) log(Level::kInfo, "unknown_blobs_removed", {{"files", std::to_string(removed)}});
}

void delete_marked_blobs(SqliteStore& store, BlobStore& blobs,
                         const std::vector<std::string>& digests) {
  for (const std::string& digest : digests) {
    // An upload of these bytes may have given them their final name again since they were marked.
    // The upload is refused as long as the row exists, and finds no file afterwards.
    blobs.remove(digest);
    store.delete_blob(digest);
  }
}

void finish_deletions(SqliteStore& store, BlobStore& blobs) {
  delete_marked_blobs(store, blobs, store.blobs_in(BlobState::kDeleting));
}

void collect_garbage(Writer& writer, WorkPool& files, BlobStore& blobs,
                     const RetentionOptions& options) {
  auto found = std::make_shared<Found>();
  writer.post(
      {.body =
           [found, options](WriteContext& write) {
             const std::int64_t now = write.now.wall_ms;
             found->more = write.store.prune(now, now - options.passing_events_ms, kStep) >= kStep;
             found->blobs = write.store.unreferenced_blobs(now - options.blob_grace_ms, kStep);
             found->more = found->more || found->blobs.size() >= kStep;
             for (const std::string& digest : found->blobs)
               write.store.set_blob_state(digest, BlobState::kDeleting);
             for (const UploadRow& upload : write.store.uploads()) {
               if (upload.touched_ms >= now - options.upload_idle_ms) continue;
               found->uploads.push_back(upload.upload_id);
               write.store.delete_upload(upload.upload_id);
             }
           },
       .done =
           [found, options, &writer, &files, &blobs](const std::exception_ptr& error) {
             report(error);
             if (error) return;
             const auto go_on = [found, options, &writer, &files, &blobs] {
               if (found->more) collect_garbage(writer, files, blobs, options);
             };
             if (found->blobs.empty() && found->uploads.empty()) return go_on();
             files.post([found, go_on, &writer, &blobs] {
               try {
                 for (const std::string& upload : found->uploads) blobs.remove_staging(upload);
                 for (const std::string& digest : found->blobs) blobs.remove(digest);
               } catch (const FileError& failure) {
                 // The rows stay marked, and the next start finishes the deletion.
                 log(Level::kWarning, "garbage_collection_failed", {{"what", failure.what()}});
                 return;
               }
               writer.post({.body =
                                [found, &blobs](WriteContext& write) {
                                  delete_marked_blobs(write.store, blobs, found->blobs);
                                },
                            .done =
                                [go_on](const std::exception_ptr& failure) {
                                  report(failure);
                                  if (!failure) go_on();
                                }});
             });
           }});
}

}  // namespace quasi::server
