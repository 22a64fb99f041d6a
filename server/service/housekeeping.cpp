#include "server/service/housekeeping.hpp"

#include <set>
#include <string>
#include <vector>

#include "server/service/log.hpp"

namespace quasi::server {
namespace {

constexpr std::int32_t kStep = 256;

void report(const std::exception_ptr& error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& failure) {
    log(Level::kWarning, "garbage_collection_failed", {{"what", failure.what()}});
  }
}

}  // namespace

void delete_by_server(WriteContext& write, const std::vector<std::string>& uids,
                      const std::string& reason) {
  write.queue.apply(DeleteJobs{.scope = Scope::everything(),
                               .request_id = {},
                               .body_sha256 = {},
                               .uids = uids,
                               .reason = reason},
                    write.now);
  write.audit.append({.time_ms = write.now.wall_ms,
                      .principal = "server",
                      .method = "DeleteJobs",
                      .target = join_lines(uids),
                      .outcome = "OK",
                      .detail = reason});
}

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

void choose_garbage(WriteContext& write, const RetentionOptions& options, Garbage& found) {
  const std::int64_t now = write.now.wall_ms;
  if (options.result_retention_ms > 0) {
    const auto old = write.store.jobs_ended_before(now - options.result_retention_ms, kStep);
    found.more = old.size() >= kStep;
    if (!old.empty()) delete_by_server(write, old, "it has expired");
  }
  found.more = write.audit.prune(now - options.audit_ms, kStep) >= kStep || found.more;
  found.more =
      write.store.prune(now, now - options.passing_events_ms, kStep) >= kStep || found.more;
  if (found.files_stay) return;
  found.blobs = write.store.unreferenced_blobs(now - options.blob_grace_ms, kStep);
  for (const std::string& digest : found.blobs)
    write.store.set_blob_state(digest, BlobState::kDeleting);
  for (const RowId job : write.store.deleted_jobs_with_logs(kStep))
    found.jobs.emplace_back(job, write.store.attempts_of(job));
  found.more = found.more || found.blobs.size() >= kStep || found.jobs.size() >= kStep;
  for (const UploadRow& upload : write.store.uploads()) {
    if (upload.touched_ms >= now - options.upload_idle_ms) continue;
    found.uploads.push_back(upload.upload_id);
    write.store.delete_upload(upload.upload_id);
  }
}

void remove_files(const Garbage& found, BlobStore& blobs, LogStore& logs) {
  for (const std::string& upload : found.uploads) blobs.remove_staging(upload);
  for (const std::string& digest : found.blobs) blobs.remove(digest);
  for (const auto& [job, attempts] : found.jobs)
    for (const std::string& attempt : attempts) logs.remove(attempt);
}

void forget_removed(SqliteStore& store, BlobStore& blobs, const Garbage& found) {
  delete_marked_blobs(store, blobs, found.blobs);
  for (const auto& [job, attempts] : found.jobs) store.set_logs_removed(job);
}

std::vector<SqliteStore::LogToFold> choose_logs_to_fold(SqliteStore& store) {
  constexpr std::int64_t kLeastBytes = 256 << 10;
  constexpr std::int32_t kLogs = 16;
  return store.logs_to_fold(kLeastBytes, kLogs);
}

void forget_folded(SqliteStore& store, const std::vector<SqliteStore::LogToFold>& logs) {
  for (const SqliteStore::LogToFold& log : logs)
    store.set_folded(log.attempt, log.folded_bytes + static_cast<std::int64_t>(log.data.size()));
}

void fold_logs(Writer& writer, WorkPool& files, LogStore& logs, std::atomic<bool>& busy) {
  if (busy.exchange(true)) return;
  auto chosen = std::make_shared<std::vector<SqliteStore::LogToFold>>();
  const auto rest = [&busy] { busy = false; };
  const auto forget = [chosen, rest, &writer] {
    const bool posted =
        writer.post({.body = [chosen](WriteContext& write) { forget_folded(write.store, *chosen); },
                     .done =
                         [rest](const std::exception_ptr& error) {
                           report(error);
                           rest();
                         }});
    if (!posted) rest();
  };
  const auto write_files = [chosen, rest, forget, &logs] {
    try {
      for (const SqliteStore::LogToFold& log : *chosen)
        logs.write(log.uid, log.folded_bytes, log.data);
    } catch (const FileError& failure) {
      // The bytes stay in the database, and the next call tries again.
      log(Level::kWarning, "log_not_written", {{"what", failure.what()}});
      return rest();
    }
    forget();
  };
  const bool posted = writer.post(
      {.body = [chosen](WriteContext& write) { *chosen = choose_logs_to_fold(write.store); },
       .done =
           [chosen, rest, write_files, &files](const std::exception_ptr& error) {
             report(error);
             if (error || chosen->empty() || !files.post(write_files)) rest();
           }});
  if (!posted) rest();
}

void collect_garbage(Writer& writer, WorkPool& files, BlobStore& blobs, LogStore& logs,
                     const RetentionOptions& options) {
  auto found = std::make_shared<Garbage>();
  if (!options.data_directory.empty()) {
    found->lock = FilesLock::for_removal(options.data_directory);
    found->files_stay = found->lock == nullptr;
  }
  writer.post(
      {.body = [found, options](WriteContext& write) { choose_garbage(write, options, *found); },
       .done =
           [found, options, &writer, &files, &blobs, &logs](const std::exception_ptr& error) {
             report(error);
             if (error) return;
             const auto go_on = [found, options, &writer, &files, &blobs, &logs] {
               found->lock.reset();  // the next step takes it again
               if (found->more) collect_garbage(writer, files, blobs, logs, options);
             };
             if (found->blobs.empty() && found->uploads.empty() && found->jobs.empty())
               return go_on();
             files.post([found, go_on, &writer, &blobs, &logs] {
               try {
                 remove_files(*found, blobs, logs);
               } catch (const FileError& failure) {
                 // The rows stay marked, and the next start finishes the deletion.
                 log(Level::kWarning, "garbage_collection_failed", {{"what", failure.what()}});
                 return;
               }
               writer.post({.body =
                                [found, &blobs](WriteContext& write) {
                                  forget_removed(write.store, blobs, *found);
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
