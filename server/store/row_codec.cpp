// Reads rows of the three wide tables; the writer and the readers share these functions.

#include <map>

#include "server/store/sqlite_store.hpp"

namespace quasi::server {

const std::string_view kJobColumns =
    "j.id, j.uid, j.name, j.kind, j.state, j.reason, j.message, j.exit_status, j.signal, "
    "j.priority, j.pool, j.device, j.gpus, j.memory_bytes, j.max_runtime_ms, j.not_before_ms, "
    "j.ready, j.attempts, j.max_attempts, j.grants, j.crashes, j.gpu_ooms, j.host_ooms, j.resume, "
    "j.checkpoints_kept, j.checkpoint_ms, j.fence, j.open_attempt, j.avoid_device, j.revision, "
    "j.job_seq, "
    "j.created_ms, j.started_ms, j.ended_ms, j.cancel_requested_ms, j.owner_id, j.tenant, "
    "j.visibility, j.action, j.cache, j.taken_from, j.unmet, "
    "j.set_id, j.set_waits";

const std::string_view kJobInScope = "(?1 OR j.owner_id=?2 OR (j.visibility=2 AND j.tenant=?3))";

const std::string_view kBlobInScope =
    "(?1 OR EXISTS (SELECT 1 FROM blob_holders h WHERE h.digest=b.digest AND h.principal_id=?2) "
    "OR EXISTS (SELECT 1 FROM blob_tenants t WHERE t.digest=b.digest AND t.tenant=?3))";

JobRow read_job(const Statement& row) {
  int c = 0;
  JobRow job;
  job.id = row.integer(c++);
  job.uid = row.text(c++);
  job.name = row.text(c++);
  job.kind = row.text(c++);
  job.state = static_cast<JobState>(row.small(c++));
  job.failure.reason = static_cast<FailureReason>(row.small(c++));
  job.failure.message = row.text(c++);
  job.failure.exit_status = row.optional_small(c++);
  job.failure.signal = row.optional_small(c++);
  job.priority = row.small(c++);
  job.pool = row.text(c++);
  job.device = static_cast<Preference>(row.small(c++));
  job.gpus = row.small(c++);
  job.memory_bytes = row.integer(c++);
  job.max_runtime_ms = row.integer(c++);
  job.not_before_ms = row.integer(c++);
  job.ready = row.integer(c++) != 0;
  job.attempts = row.small(c++);
  job.max_attempts = row.small(c++);
  job.grants = row.small(c++);
  job.crashes = row.small(c++);
  job.gpu_ooms = row.small(c++);
  job.host_ooms = row.small(c++);
  job.resume = row.integer(c++) != 0;
  job.checkpoints_kept = row.small(c++);
  job.checkpoint_ms = row.integer(c++);
  job.fence = row.integer(c++);
  if (!row.is_null(c)) job.open_attempt = row.integer(c);
  ++c;
  job.avoid_device = row.text(c++);
  job.revision = row.integer(c++);
  job.job_seq = row.integer(c++);
  job.created_ms = row.integer(c++);
  job.started_ms = row.integer(c++);
  job.ended_ms = row.integer(c++);
  job.cancel_requested_ms = row.integer(c++);
  job.owner_id = row.integer(c++);
  job.tenant = row.text(c++);
  job.visibility = static_cast<Visibility>(row.small(c++));
  job.action = row.text(c++);
  job.cache = static_cast<CachePolicy>(row.small(c++));
  if (!row.is_null(c)) job.taken_from = row.integer(c);
  job.unmet = row.small(++c);
  if (!row.is_null(++c)) job.set_id = row.integer(c);
  job.set_waits = row.integer(++c) != 0;
  return job;
}

const std::string_view kAttemptColumns =
    "a.id, a.uid, a.job_id, a.number, a.fence, a.worker_id, a.incarnation, a.device_ids, "
    "a.acquire_id, a.granted_ms, a.started_ms, a.ended_ms, a.outcome, a.reason, a.message, "
    "a.exit_status, a.signal, a.release_message, a.wall_seconds, a.gpu_seconds, a.peak_gpu_bytes, "
    "a.peak_ram_bytes, a.energy_joules, a.log_bytes, a.log_full, a.counted, a.new_checkpoint, "
    "a.report_digest, a.end_state, a.isolated, a.walls, a.gpus, a.reserved_bytes, a.preempted";

AttemptRow read_attempt(const Statement& row) {
  int c = 0;
  AttemptRow attempt;
  attempt.id = row.integer(c++);
  attempt.uid = row.text(c++);
  attempt.job_id = row.integer(c++);
  attempt.number = row.small(c++);
  attempt.fence = row.integer(c++);
  attempt.worker_id = row.text(c++);
  attempt.incarnation = row.text(c++);
  attempt.device_ids = split_lines(row.text(c++));
  attempt.acquire_id = row.text(c++);
  attempt.granted_ms = row.integer(c++);
  attempt.started_ms = row.integer(c++);
  attempt.ended_ms = row.integer(c++);
  attempt.outcome = static_cast<AttemptOutcome>(row.small(c++));
  attempt.failure.reason = static_cast<FailureReason>(row.small(c++));
  attempt.failure.message = row.text(c++);
  attempt.failure.exit_status = row.optional_small(c++);
  attempt.failure.signal = row.optional_small(c++);
  attempt.release_message = row.text(c++);
  attempt.usage.wall_seconds = row.real(c++);
  attempt.usage.gpu_seconds = row.real(c++);
  attempt.usage.peak_gpu_bytes = row.integer(c++);
  attempt.usage.peak_ram_bytes = row.integer(c++);
  attempt.usage.energy_joules = row.real(c++);
  attempt.log_bytes = row.integer(c++);
  attempt.log_full = row.integer(c++) != 0;
  attempt.counted = row.integer(c++) != 0;
  attempt.new_checkpoint = row.integer(c++) != 0;
  attempt.report_digest = row.text(c++);
  attempt.end_state = static_cast<JobState>(row.small(c++));
  if (!row.is_null(c))
    attempt.isolation = IsolationInfo{.is_whole = row.integer(c) != 0, .walls = row.text(c + 1)};
  attempt.gpus = row.small(c + 2);
  attempt.reserved_bytes = row.integer(c + 3);
  attempt.preempted = row.text(c + 4);
  return attempt;
}

const std::string_view kEventColumns =
    "e.seq, e.job_id, e.job_seq, e.time_ms, e.type, e.from_state, e.to_state, e.reason, e.failure, "
    "e.exit_status, e.signal, e.attempt, e.attempt_uid, e.fence, e.worker_id, e.message, "
    "e.reinstated, e.not_before_ms, e.progress, e.log_bytes, e.cp_sequence, e.cp_step, "
    "e.cp_digest, e.cp_size, e.old_priority, e.new_priority";

EventRow read_event(const Statement& row) {
  int c = 0;
  EventRow event;
  event.seq = row.integer(c++);
  event.job_id = row.integer(c++);
  event.job_seq = row.integer(c++);
  event.time_ms = row.integer(c++);
  event.type = static_cast<EventType>(row.small(c++));
  if (!row.is_null(c)) event.from = static_cast<JobState>(row.small(c));
  ++c;
  event.to = static_cast<JobState>(row.small(c++));
  event.failure.reason = static_cast<FailureReason>(row.small(c++));
  event.failure.message = row.text(c++);
  event.failure.exit_status = row.optional_small(c++);
  event.failure.signal = row.optional_small(c++);
  event.attempt = row.small(c++);
  event.attempt_uid = row.text(c++);
  event.fence = row.integer(c++);
  event.worker_id = row.text(c++);
  event.message = row.text(c++);
  event.reinstated = row.integer(c++) != 0;
  event.not_before_ms = row.integer(c++);
  event.progress = row.text(c++);
  event.log_bytes = row.integer(c++);
  event.checkpoint.sequence = row.integer(c++);
  event.checkpoint.step = row.integer(c++);
  event.checkpoint.digest = row.text(c++);
  event.checkpoint.size_bytes = row.integer(c++);
  event.old_priority = row.small(c++);
  event.new_priority = row.small(c++);
  event.checkpoint.fence = event.fence;
  event.checkpoint.created_ms = event.time_ms;
  return event;
}

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    lines.push_back(text.substr(start, end - start));
    start = end == std::string::npos ? text.size() : end + 1;
  }
  return lines;
}

std::vector<WorkerRow> SqliteStore::workers() {
  return read_workers(sql(kWorkersText), sql(kWorkerDevicesText));
}

std::vector<WorkerRow> read_workers(Statement& of_workers, Statement& of_devices) {
  std::map<std::string, WorkerRow> workers;
  {
    Rows rows(of_workers);
    while (rows.next()) {
      WorkerRow worker{.id = rows->text(0),
                       .incarnation = rows->text(1),
                       .name = rows->text(2),
                       .version = rows->text(3),
                       .pool = rows->text(4),
                       .kinds = split_lines(rows->text(5)),
                       .devices = {},
                       .last_seen_ms = rows->integer(6)};
      workers[worker.id] = std::move(worker);
    }
  }
  Rows rows(of_devices);
  while (rows.next())
    workers[rows->text(0)].devices.push_back({.id = rows->text(1),
                                              .backend = static_cast<Backend>(rows->small(2)),
                                              .model = rows->text(3),
                                              .memory_bytes = rows->integer(4),
                                              .slots = rows->small(5)});
  std::vector<WorkerRow> list;
  for (auto& [id, worker] : workers)
    if (!worker.id.empty()) list.push_back(std::move(worker));
  return list;
}

}  // namespace quasi::server
