// The rows of blobs, of uploads that may be continued, and of deleted jobs.

#include "server/store/query.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {

std::optional<BlobState> SqliteStore::blob_state(std::string_view digest) {
  return one<BlobState>(sql("SELECT state FROM blobs WHERE digest=?").bind(digest),
                        [](const Statement& row) { return static_cast<BlobState>(row.small(0)); });
}

std::optional<std::int64_t> SqliteStore::blob_created_ms(std::string_view digest) {
  return one<std::int64_t>(
      sql("SELECT created_ms FROM blobs WHERE digest=? AND state=1").bind(digest),
      [](const Statement& row) { return row.integer(0); });
}

void SqliteStore::insert_blob(const std::string& digest, std::int64_t size_bytes,
                              std::int64_t now_ms) {
  // Uploading a corrupt blob again makes it present.
  sql("INSERT INTO blobs VALUES (?,?,?,1) ON CONFLICT (digest) DO UPDATE SET state=1, "
      "size_bytes=excluded.size_bytes, created_ms=excluded.created_ms")
      .bind(digest, size_bytes, now_ms)
      .run();
}

void SqliteStore::set_blob_state(const std::string& digest, BlobState state) {
  sql("UPDATE blobs SET state=? WHERE digest=?").bind(state, digest).run();
}

void SqliteStore::delete_blob(const std::string& digest) {
  sql("DELETE FROM blobs WHERE digest=? AND state=2").bind(digest).run();
}

std::vector<std::string> SqliteStore::unreferenced_blobs(std::int64_t before_ms,
                                                         std::int32_t limit) {
  return all<std::string>(
      sql("SELECT digest FROM blobs b WHERE created_ms<? AND state=1 "
          "AND NOT EXISTS (SELECT 1 FROM job_inputs i WHERE i.digest=b.digest) "
          "AND NOT EXISTS (SELECT 1 FROM artifacts a WHERE a.digest=b.digest) "
          "AND NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.digest=b.digest) LIMIT ?")
          .bind(before_ms, limit),
      first_text);
}

std::vector<std::string> SqliteStore::blobs_in(BlobState state) {
  return all<std::string>(sql("SELECT digest FROM blobs WHERE state=?").bind(state), first_text);
}

void SqliteStore::save_upload(const UploadRow& upload) {
  sql("INSERT INTO uploads VALUES (?,?,?,?,?) ON CONFLICT (upload_id) DO UPDATE SET "
      "committed_bytes=excluded.committed_bytes, touched_ms=excluded.touched_ms")
      .bind(upload.upload_id, upload.digest, upload.size_bytes, upload.committed_bytes,
            upload.touched_ms)
      .run();
}

void SqliteStore::delete_upload(const std::string& upload_id) {
  sql("DELETE FROM uploads WHERE upload_id=?").bind(upload_id).run();
}

std::vector<UploadRow> SqliteStore::uploads() {
  return all<UploadRow>(
      sql("SELECT upload_id, digest, size_bytes, committed_bytes, touched_ms FROM uploads").bind(),
      [](const Statement& row) {
        return UploadRow{.upload_id = row.text(0),
                         .digest = row.text(1),
                         .size_bytes = row.integer(2),
                         .committed_bytes = row.integer(3),
                         .touched_ms = row.integer(4)};
      });
}

void SqliteStore::mark_deleted(RowId job, std::int64_t now_ms) {
  sql("UPDATE jobs SET deleted_ms=?, spec=x'', summary='' WHERE id=?").bind(now_ms, job).run();
  sql("DELETE FROM artifacts WHERE job_id=?").bind(job).run();
  sql("DELETE FROM job_inputs WHERE job_id=?").bind(job).run();
  sql("DELETE FROM checkpoints WHERE job_id=?").bind(job).run();
  sql("DELETE FROM progress WHERE job_id=?").bind(job).run();
}

std::vector<std::string> SqliteStore::jobs_ended_before(std::int64_t before_ms,
                                                        std::int32_t limit) {
  return all<std::string>(sql("SELECT uid FROM jobs WHERE state>=7 AND deleted_ms=0 AND ended_ms<? "
                              "ORDER BY ended_ms LIMIT ?")
                              .bind(before_ms, limit),
                          first_text);
}

std::vector<RowId> SqliteStore::deleted_jobs_with_logs(std::int32_t limit) {
  return all<RowId>(
      sql("SELECT id FROM jobs WHERE deleted_ms>0 AND logs_removed=0 LIMIT ?").bind(limit),
      [](const Statement& row) { return row.integer(0); });
}

std::vector<std::string> SqliteStore::attempts_of(RowId job) {
  return all<std::string>(sql("SELECT uid FROM attempts WHERE job_id=?").bind(job), first_text);
}

void SqliteStore::set_logs_removed(RowId job) {
  sql("UPDATE jobs SET logs_removed=1 WHERE id=?").bind(job).run();
}

}  // namespace quasi::server
