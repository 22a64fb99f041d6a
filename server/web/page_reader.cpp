#include "server/web/page_reader.hpp"

#include <algorithm>

#include "server/queue/refused.hpp"

namespace quasi::server {
namespace {

constexpr std::int64_t kSumsMs = 1'000;
constexpr std::int32_t kOpenJobs = 50;
constexpr std::int32_t kWaitingJobs = 20;
constexpr std::int32_t kFailedJobs = 10;
constexpr std::int32_t kAttempts = 24;
constexpr std::int32_t kArtifacts = 100;
constexpr std::int32_t kChanges = 50;
constexpr std::int64_t kLogBytes = 8 << 10;

ReadStore::Page newest(std::int32_t limit) {
  return {.order = ReadStore::Order::kDescending, .cursor = 0, .limit = limit};
}

}  // namespace

PageReader::PageReader(const WebParts& parts)
    : parts_(parts), store_(parts.database_path), figures_(parts.database_path) {}

Overview PageReader::overview(const std::optional<Scope>& scope) {
  const Now now = parts_.clock.now();
  if (!summed_ms_ || now.monotonic_ms - *summed_ms_ >= kSumsMs) {
    everybody_ = figures_.unfinished();
    stored_ = figures_.stored_files();
    summed_ms_ = now.monotonic_ms;
  }
  const auto fleet = parts_.fleet.view();
  Overview page;
  page.now_ms = now.wall_ms;
  page.state = parts_.state();
  page.everybody = everybody_;
  page.stored = stored_;
  page.workers = fleet->workers;
  page.devices = parts_.fleet.history();
  parts_.fleet.copy_jobs(page.queued, page.running);
  if (!scope) return page;
  using enum JobState;
  page.has_jobs = true;
  const ReadStore::Transaction moment(store_);
  page.visible = figures_.unfinished(*scope);
  page.open = store_.list(*scope, {.states = {kLeased, kRunning, kCancelling}}, newest(kOpenJobs));
  page.waiting = store_.list(*scope, {.states = {kBlocked, kHeld, kQueued}}, newest(kWaitingJobs));
  page.failed = store_.list(*scope, {.states = {kFailed}}, newest(kFailedJobs));
  page.slots = store_.open_slots(*scope);
  return page;
}

std::optional<JobPage> PageReader::job(const Scope& scope, const std::string& uid) {
  JobPage page;
  page.now_ms = parts_.clock.now().wall_ms;
  const ReadStore::Transaction moment(store_);
  try {
    auto found = store_.find(scope, uid);
    if (!found || found->row.uid != uid) return std::nullopt;  // a page has a whole id
    page.job = std::move(*found);
  } catch (const Refused&) {
    return std::nullopt;  // the begin of several ids
  }
  const RowId id = page.job.row.id;
  page.attempts = store_.attempts_of(id, kAttempts);
  std::reverse(page.attempts.begin(), page.attempts.end());
  for (const WorkerRow& worker : store_.workers()) page.worker_names[worker.id] = worker.name;
  page.artifacts = store_.artifacts_of(id, "", kArtifacts);
  page.changes = figures_.state_changes_of(id, kChanges);
  if (const auto log = store_.log_of(id, 0)) {
    page.log_bytes = log->bytes;
    page.log_tail = tail_of(*log);
  }
  return page;
}

/// The newest bytes of a log, from its file and from the rows behind it.
std::string PageReader::tail_of(const LogView& log) {
  std::int64_t offset = std::max<std::int64_t>(0, log.bytes - kLogBytes);
  std::string text;
  try {
    if (offset < log.folded_bytes) {
      text = parts_.logs.read(log.attempt_uid, offset, log.folded_bytes - offset);
      offset = log.folded_bytes;
    }
    if (offset < log.bytes) text += store_.log_tail(log.attempt, offset, log.bytes - offset);
  } catch (const FileError& error) {
    if (!error.is_missing()) throw;
  }
  return text;
}

}  // namespace quasi::server
