#include "server/store/sqlite_store.hpp"

#include "server/queue/refused.hpp"
#include "server/store/query.hpp"

namespace quasi::server {

SqliteStore::SqliteStore(Database& database) : database_(database), statements_(database) {}
SqliteStore::~SqliteStore() = default;

Statement& SqliteStore::sql(std::string_view text) { return statements_.get(text); }

RowId SqliteStore::insert_job(const NewJob& job) {
  const JobRow& row = job.row;
  sql("INSERT INTO jobs (uid, name, kind, state, priority, pool, placement, device, gpus, "
      "memory_bytes, max_runtime_ms, not_before_ms, ready, max_attempts, resume, "
      "checkpoints_kept, checkpoint_ms, revision, job_seq, created_ms, ended_ms, owner_id, tenant, "
      "visibility, action, cache, taken_from, unmet, set_id, set_waits, spec) "
      "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
      .run(row.uid, row.name, row.kind, row.state, row.priority, row.pool, encode(row.placement()),
           row.device, row.gpus, row.memory_bytes, row.max_runtime_ms, row.not_before_ms, row.ready,
           row.max_attempts, row.resume, row.checkpoints_kept, row.checkpoint_ms, row.revision,
           row.job_seq, row.created_ms, row.ended_ms, row.owner_id, row.tenant, row.visibility,
           row.action, row.cache, row.taken_from, row.unmet, row.set_id, row.set_waits,
           Statement::Blob{job.spec});
  const RowId id = database_.last_insert_id();
  for (const auto& [key, value] : job.labels)
    sql("INSERT INTO job_labels VALUES (?,?,?)").run(id, key, value);
  for (const JobInput& input : job.inputs) insert_input(id, input);
  return id;
}

void SqliteStore::update_job(const JobRow& row) {
  changes_.push_back({.job = row.id, .event = {}});
  sql("UPDATE jobs SET state=?, reason=?, message=?, exit_status=?, signal=?, priority=?, "
      "placement=?, "
      "memory_bytes=?, not_before_ms=?, ready=?, attempts=?, grants=?, crashes=?, gpu_ooms=?, "
      "host_ooms=?, fence=?, open_attempt=?, avoid_device=?, revision=?, job_seq=?, started_ms=?, "
      "ended_ms=?, cancel_requested_ms=?, unmet=?, set_waits=? WHERE id=?")
      .run(row.state, row.failure.reason, row.failure.message, row.failure.exit_status,
           row.failure.signal, row.priority, encode(row.placement()), row.memory_bytes,
           row.not_before_ms, row.ready, row.attempts, row.grants, row.crashes, row.gpu_ooms,
           row.host_ooms, row.fence, row.open_attempt, row.avoid_device, row.revision, row.job_seq,
           row.started_ms, row.ended_ms, row.cancel_requested_ms, row.unmet, row.set_waits, row.id);
}

namespace {

const std::string kJobByUid = "SELECT " + std::string(kJobColumns) +
                              " FROM jobs j WHERE j.uid=?4 AND j.deleted_ms=0 AND " +
                              std::string(kJobInScope);
const std::string kJobById = "SELECT " + std::string(kJobColumns) + " FROM jobs j WHERE j.id=?";
const std::string kAttemptByUid =
    "SELECT " + std::string(kAttemptColumns) + " FROM attempts a WHERE a.uid=?";
const std::string kAttemptById =
    "SELECT " + std::string(kAttemptColumns) + " FROM attempts a WHERE a.id=?";
const std::string kOpenAttempts = "SELECT " + std::string(kAttemptColumns) +
                                  " FROM attempts a WHERE a.outcome=0 ORDER BY a.fence";
const std::string kOpenAttemptsOf =
    "SELECT " + std::string(kAttemptColumns) +
    " FROM attempts a WHERE a.outcome=0 AND a.worker_id=? ORDER BY a.fence";
const std::string kAttemptsOfAcquire = "SELECT " + std::string(kAttemptColumns) +
                                       " FROM attempts a WHERE a.acquire_id=? ORDER BY a.fence";

}  // namespace

std::optional<JobRow> SqliteStore::find_job(const Scope& scope, std::string_view uid) {
  return one<JobRow>(
      sql(kJobByUid).bind(scope.is_everything, scope.principal_id, scope.tenant, uid), read_job);
}

std::optional<JobRow> SqliteStore::job(RowId id) {
  return one<JobRow>(sql(kJobById).bind(id), read_job);
}

std::string SqliteStore::spec_of(RowId job) {
  return one<std::string>(sql("SELECT spec FROM jobs WHERE id=?").bind(job), first_text)
      .value_or("");
}

void SqliteStore::set_summary(RowId job, const std::string& summary_json) {
  sql("UPDATE jobs SET summary=? WHERE id=?").run(summary_json, job);
}

std::vector<JobRow> SqliteStore::delayed_retries() {
  // Two selections, because each state has an index of its own.
  const auto of_state = [](const char* state) {
    return "SELECT " + std::string(kJobColumns) + " FROM jobs j WHERE j.state=" + state +
           " AND j.ready=0 AND j.grants>0";
  };
  static const std::string kQuery = of_state("3") + " UNION ALL " + of_state("2");
  return all<JobRow>(sql(kQuery).bind(), read_job);
}

std::int32_t SqliteStore::promote_delayed(std::int64_t now_ms) {
  // This runs several times a second. Mostly no job is due; then the database is not written. A job
  // that was granted before waits out a back-off, which ends on the monotonic clock. Without the
  // name of its index SQLite would read every queued job.
  if (!one<std::string>(sql("SELECT id FROM jobs INDEXED BY jobs_delayed WHERE state=3 "
                            "AND ready=0 AND grants=0 AND not_before_ms<=? LIMIT 1")
                            .bind(now_ms),
                        first_text))
    return 0;
  sql("UPDATE jobs INDEXED BY jobs_delayed SET ready=1, revision=revision+1 "
      "WHERE state=3 AND ready=0 AND grants=0 AND not_before_ms<=?")
      .run(now_ms);
  return static_cast<std::int32_t>(database_.changes());
}

RowId SqliteStore::insert_attempt(const AttemptRow& row) {
  changes_.push_back({.job = row.job_id, .event = {}});
  sql("INSERT INTO attempts (uid, job_id, number, fence, worker_id, incarnation, device_ids, "
      "acquire_id, granted_ms, gpus, reserved_bytes) VALUES (?,?,?,?,?,?,?,?,?,?,?)")
      .run(row.uid, row.job_id, row.number, row.fence, row.worker_id, row.incarnation,
           join_lines(row.device_ids), row.acquire_id, row.granted_ms, row.gpus,
           row.reserved_bytes);
  return database_.last_insert_id();
}

void SqliteStore::update_attempt(const AttemptRow& row) {
  changes_.push_back({.job = row.job_id, .event = {}});
  std::optional<bool> isolated;
  if (row.isolation) isolated = row.isolation->is_whole;
  sql("UPDATE attempts SET incarnation=?, started_ms=?, ended_ms=?, outcome=?, reason=?, "
      "message=?, exit_status=?, signal=?, release_message=?, wall_seconds=?, gpu_seconds=?, "
      "peak_gpu_bytes=?, peak_ram_bytes=?, energy_joules=?, log_bytes=?, log_full=?, counted=?, "
      "new_checkpoint=?, report_digest=?, end_state=?, isolated=?, walls=?, preempted=? WHERE id=?")
      .run(row.incarnation, row.started_ms, row.ended_ms, row.outcome, row.failure.reason,
           row.failure.message, row.failure.exit_status, row.failure.signal, row.release_message,
           row.usage.wall_seconds, row.usage.gpu_seconds, row.usage.peak_gpu_bytes,
           row.usage.peak_ram_bytes, row.usage.energy_joules, row.log_bytes, row.log_full,
           row.counted, row.new_checkpoint, row.report_digest, row.end_state, isolated,
           row.isolation ? row.isolation->walls : "", row.preempted, row.id);
}

std::optional<AttemptRow> SqliteStore::find_attempt(std::string_view uid) {
  return one<AttemptRow>(sql(kAttemptByUid).bind(uid), read_attempt);
}

std::optional<AttemptRow> SqliteStore::attempt(RowId id) {
  return one<AttemptRow>(sql(kAttemptById).bind(id), read_attempt);
}

std::vector<AttemptRow> SqliteStore::open_attempts() {
  return all<AttemptRow>(sql(kOpenAttempts).bind(), read_attempt);
}

std::vector<AttemptRow> SqliteStore::open_attempts_of(const std::string& worker_id) {
  return all<AttemptRow>(sql(kOpenAttemptsOf).bind(worker_id), read_attempt);
}

std::vector<AttemptRow> SqliteStore::attempts_of_acquire(const std::string& acquire_id) {
  return all<AttemptRow>(sql(kAttemptsOfAcquire).bind(acquire_id), read_attempt);
}

std::int64_t SqliteStore::next_fence() {
  sql("UPDATE counters SET value=value+1 WHERE name='fence'").bind().run();
  return newest_fence();
}

void SqliteStore::raise_fence(std::int64_t fence) {
  sql("UPDATE counters SET value=MAX(value, ?) WHERE name='fence'").run(fence);
}

std::int64_t SqliteStore::newest_fence() {
  Rows rows(sql("SELECT value FROM counters WHERE name='fence'").bind());
  return rows.next() ? rows->integer(0) : 0;
}

std::int64_t SqliteStore::newest_event() {
  return one<std::int64_t>(sql("SELECT seq FROM sqlite_sequence WHERE name='events'").bind(),
                           [](const Statement& row) { return row.integer(0); })
      .value_or(0);
}

std::int64_t SqliteStore::append_event(const EventRow& event) {
  changes_.push_back({.job = event.job_id, .event = event.type});
  const bool checkpoint = event.type == EventType::kCheckpoint;
  const auto if_checkpoint = [&](std::int64_t value) {
    return checkpoint ? std::optional<std::int64_t>(value) : std::nullopt;
  };
  const auto if_priority = [&](std::int32_t value) {
    return event.type == EventType::kPriority ? std::optional<std::int32_t>(value) : std::nullopt;
  };
  if (!event.from && event.type == EventType::kState) {
    // A new job has no attempt yet, so the other columns keep their defaults. A batch has a
    // thousand of these rows.
    sql("INSERT INTO events (job_id, job_seq, time_ms, type, to_state, message, not_before_ms) "
        "VALUES (?,?,?,?,?,?,?)")
        .run(event.job_id, event.job_seq, event.time_ms, event.type, event.to, event.message,
             event.not_before_ms);
    return database_.last_insert_id();
  }
  std::optional<std::int32_t> from;
  if (event.from) from = static_cast<std::int32_t>(*event.from);
  sql("INSERT INTO events (job_id, job_seq, time_ms, type, from_state, to_state, reason, failure, "
      "exit_status, signal, attempt, attempt_uid, fence, worker_id, message, reinstated, "
      "not_before_ms, progress, log_bytes, cp_sequence, cp_step, cp_digest, cp_size, "
      "old_priority, new_priority) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
      .run(event.job_id, event.job_seq, event.time_ms, event.type, from, event.to,
           event.failure.reason, event.failure.message, event.failure.exit_status,
           event.failure.signal, event.attempt, event.attempt_uid, event.fence, event.worker_id,
           event.message, event.reinstated, event.not_before_ms, Statement::Blob{event.progress},
           event.log_bytes, if_checkpoint(event.checkpoint.sequence),
           if_checkpoint(event.checkpoint.step),
           checkpoint ? std::optional<std::string>(event.checkpoint.digest) : std::nullopt,
           if_checkpoint(event.checkpoint.size_bytes), if_priority(event.old_priority),
           if_priority(event.new_priority));
  return database_.last_insert_id();
}

void SqliteStore::save_progress(RowId job, const std::string& body, std::int64_t now_ms) {
  sql("INSERT INTO progress VALUES (?,?,?) ON CONFLICT (job_id) DO UPDATE SET body=excluded.body, "
      "time_ms=excluded.time_ms")
      .run(job, Statement::Blob{body}, now_ms);
}

std::optional<std::int64_t> SqliteStore::blob_size(const Scope& scope, std::string_view digest) {
  static const std::string kQuery =
      "SELECT size_bytes FROM blobs b WHERE digest=?4 AND state=1 AND " + std::string(kBlobInScope);
  return one<std::int64_t>(
      sql(kQuery).bind(scope.is_everything, scope.principal_id, scope.tenant, digest),
      [](const Statement& row) { return row.integer(0); });
}

void SqliteStore::insert_artifact(RowId job, const ArtifactRow& artifact) {
  sql("INSERT INTO artifacts VALUES (?,?,?,?,?)")
      .run(job, artifact.name, artifact.digest, artifact.size_bytes, artifact.media_type);
}

std::optional<CheckpointRow> SqliteStore::newest_checkpoint(RowId job) {
  return one<CheckpointRow>(
      sql("SELECT sequence, step, digest, size_bytes, fence, created_ms FROM checkpoints "
          "WHERE job_id=? ORDER BY sequence DESC LIMIT 1")
          .bind(job),
      [](const Statement& row) {
        return CheckpointRow{.sequence = row.integer(0),
                             .step = row.integer(1),
                             .digest = row.text(2),
                             .size_bytes = row.integer(3),
                             .fence = row.integer(4),
                             .created_ms = row.integer(5)};
      });
}

void SqliteStore::insert_checkpoint(RowId job, const CheckpointRow& checkpoint) {
  sql("INSERT INTO checkpoints VALUES (?,?,?,?,?,?,?)")
      .run(job, checkpoint.sequence, checkpoint.step, checkpoint.digest, checkpoint.size_bytes,
           checkpoint.fence, checkpoint.created_ms);
}

void SqliteStore::drop_old_checkpoints(RowId job, std::int32_t keep) {
  sql("DELETE FROM checkpoints WHERE job_id=?1 AND sequence NOT IN (SELECT sequence FROM "
      "checkpoints WHERE job_id=?1 ORDER BY sequence DESC LIMIT ?2)")
      .run(job, keep);
}

std::optional<std::pair<std::string, std::int64_t>> SqliteStore::next_blob(
    const std::string& after) {
  return one<std::pair<std::string, std::int64_t>>(
      sql("SELECT digest, size_bytes FROM blobs WHERE state=1 AND digest>? ORDER BY digest LIMIT 1")
          .bind(after),
      [](const Statement& row) { return std::pair(row.text(0), row.integer(1)); });
}

void SqliteStore::save_worker(const WorkerRow& worker) {
  sql("INSERT INTO workers VALUES (?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET "
      "incarnation=excluded.incarnation, name=excluded.name, version=excluded.version, "
      "pool=excluded.pool, kinds=excluded.kinds, last_seen_ms=excluded.last_seen_ms")
      .run(worker.id, worker.incarnation, worker.name, worker.version, worker.pool,
           join_lines(worker.kinds), worker.last_seen_ms);
  sql("DELETE FROM devices WHERE worker_id=?").run(worker.id);
  for (const DeviceRow& device : worker.devices)
    sql("INSERT INTO devices VALUES (?,?,?,?,?,?)")
        .run(worker.id, device.id, device.backend, device.model, device.memory_bytes, device.slots);
}

std::optional<RequestRow> SqliteStore::find_request(const std::string& request_id) {
  return one<RequestRow>(
      sql("SELECT method, body_sha256, response FROM requests WHERE request_id=?").bind(request_id),
      [](const Statement& row) {
        return RequestRow{
            .method = row.text(0), .body_sha256 = row.text(1), .response = row.text(2)};
      });
}

void SqliteStore::save_request(const std::string& request_id, const RequestRow& request,
                               std::int64_t expires_ms) {
  sql("INSERT INTO requests VALUES (?,?,?,?,?)")
      .run(request_id, request.method, request.body_sha256, request.response, expires_ms);
}

std::string SqliteStore::meta(const std::string& key) {
  return one<std::string>(sql("SELECT value FROM meta WHERE key=?").bind(key), first_text)
      .value_or("");
}

void SqliteStore::set_meta(const std::string& key, std::string_view value) {
  sql("INSERT INTO meta VALUES (?,?) ON CONFLICT (key) DO UPDATE SET value=excluded.value")
      .run(key, Statement::Blob{value});
}

std::int64_t SqliteStore::prune(std::int64_t now_ms, std::int64_t events_before_ms,
                                std::int32_t limit) {
  sql("DELETE FROM requests WHERE request_id IN (SELECT request_id FROM requests "
      "WHERE expires_ms<? LIMIT ?)")
      .run(now_ms, limit);
  std::int64_t removed = database_.changes();
  sql("DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE type<>1 AND time_ms<? "
      "LIMIT ?)")
      .run(events_before_ms, limit);
  return removed + database_.changes();
}

}  // namespace quasi::server
