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
      .run(digest, size_bytes, now_ms);
}

void SqliteStore::add_holder(const std::string& digest, std::int64_t principal_id) {
  sql("INSERT OR IGNORE INTO blob_holders VALUES (?,?)").run(digest, principal_id);
}

void SqliteStore::set_blob_state(const std::string& digest, BlobState state) {
  sql("UPDATE blobs SET state=? WHERE digest=?").run(state, digest);
}

void SqliteStore::delete_blob(const std::string& digest) {
  sql("DELETE FROM blobs WHERE digest=? AND state=2").run(digest);
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
      .run(upload.upload_id, upload.digest, upload.size_bytes, upload.committed_bytes,
           upload.touched_ms);
}

void SqliteStore::delete_upload(const std::string& upload_id) {
  sql("DELETE FROM uploads WHERE upload_id=?").run(upload_id);
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

void SqliteStore::append_log(const AttemptRow& attempt, std::string_view bytes) {
  sql("INSERT INTO log_tails VALUES (?,?,?)")
      .run(attempt.id, attempt.log_bytes, Statement::Blob{bytes});
}

std::int64_t SqliteStore::folded_log_bytes(RowId attempt) {
  return one<std::int64_t>(sql("SELECT folded_bytes FROM attempts WHERE id=?").bind(attempt),
                           [](const Statement& row) { return row.integer(0); })
      .value_or(0);
}

std::string SqliteStore::log_tail(RowId attempt, std::int64_t offset, std::int64_t size) {
  return read_log_tail(sql(kLogTailText), attempt, offset, size);
}

std::string read_log_tail(Statement& statement, RowId attempt, std::int64_t offset,
                          std::int64_t size) {
  Rows rows(statement.bind(attempt, offset));
  std::string bytes;
  while (static_cast<std::int64_t>(bytes.size()) < size && rows.next()) {
    const std::string data = rows->text(1);
    const std::int64_t skipped =
        offset + static_cast<std::int64_t>(bytes.size()) - rows->integer(0);
    if (skipped < 0 || skipped > static_cast<std::int64_t>(data.size())) break;
    bytes += data.substr(static_cast<std::size_t>(skipped));
  }
  bytes.resize(std::min(bytes.size(), static_cast<std::size_t>(size)));
  return bytes;
}

std::vector<SqliteStore::LogToFold> SqliteStore::logs_to_fold(std::int64_t least_bytes,
                                                              std::int32_t limit) {
  constexpr std::int64_t kMost = 1 << 20;
  auto logs = all<LogToFold>(
      sql("SELECT id, uid, folded_bytes FROM attempts WHERE folded_bytes < log_bytes AND "
          "(outcome<>0 OR log_bytes-folded_bytes >= ?) LIMIT ?")
          .bind(least_bytes, limit),
      [](const Statement& row) {
        return LogToFold{.attempt = row.integer(0),
                         .uid = row.text(1),
                         .folded_bytes = row.integer(2),
                         .data = {}};
      });
  for (LogToFold& log : logs) log.data = log_tail(log.attempt, log.folded_bytes, kMost);
  return logs;
}

void SqliteStore::set_folded(RowId attempt, std::int64_t bytes) {
  sql("UPDATE attempts SET folded_bytes=max(folded_bytes, ?) WHERE id=?").run(bytes, attempt);
  // The first row that is left may begin in the file.
  sql("DELETE FROM log_tails WHERE attempt_id=?1 AND at_byte+length(data) <= ?2")
      .run(attempt, bytes);
  sql("UPDATE jobs SET logs_removed=0 WHERE deleted_ms>0 AND "
      "id=(SELECT job_id FROM attempts WHERE id=?)")
      .run(attempt);
}

void SqliteStore::mark_deleted(RowId job, std::int64_t now_ms) {
  sql("UPDATE jobs SET deleted_ms=?, spec=x'', summary='' WHERE id=?").run(now_ms, job);
  // A job that took this result before offers it from now on.
  sql("UPDATE results SET job_id=coalesce((SELECT max(j.id) FROM jobs j WHERE "
      "j.action=results.action AND j.taken_from IS NOT NULL AND j.deleted_ms=0 AND "
      "results.share IN ('tenant ' || j.tenant, 'owner ' || j.owner_id)), job_id) WHERE job_id=?")
      .run(job);
  sql("DELETE FROM results WHERE job_id=?").run(job);
  sql("DELETE FROM artifacts WHERE job_id=?").run(job);
  sql("DELETE FROM job_inputs WHERE job_id=?").run(job);
  sql("DELETE FROM artifact_inputs WHERE job_id=?").run(job);
  sql("DELETE FROM job_dependencies WHERE job_id=?").run(job);
  sql("DELETE FROM checkpoints WHERE job_id=?").run(job);
  sql("DELETE FROM progress WHERE job_id=?").run(job);
  sql("DELETE FROM log_tails WHERE attempt_id IN (SELECT id FROM attempts WHERE job_id=?)")
      .run(job);
  sql("UPDATE attempts SET folded_bytes=log_bytes WHERE job_id=?").run(job);
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
  sql("UPDATE jobs SET logs_removed=1 WHERE id=?").run(job);
}

}  // namespace quasi::server
