// Follows the committed events of jobs, one by one.

#include <array>

#include "tests/service/simulator/judge.hpp"

namespace quasi::sim {
namespace {

using server::Condition;
using server::FailureReason;

/// The changes of state that docs/architecture.md draws, one row for each state that is left.
bool is_allowed(JobState from, JobState to, bool reinstated) {
  using enum JobState;
  if (reinstated)
    return (from == kQueued || from == kHeld || from == kBlocked) &&
           (to == kLeased || to == kRunning);
  switch (from) {
    case kBlocked:
      return to == kQueued || to == kFailed || to == kSucceeded || to == kHeld || to == kCancelled;
    case kHeld:
      return to == kQueued || to == kBlocked || to == kFailed || to == kCancelled;
    case kQueued:
      return to == kLeased || to == kHeld || to == kBlocked || to == kSucceeded || to == kCancelled;
    case kLeased:
      return to == kRunning || to == kQueued || to == kFailed || to == kCancelling;
    case kRunning:
      return to == kSucceeded || to == kQueued || to == kFailed || to == kCancelling;
    case kCancelling:
      return to == kCancelled;
    default:
      return false;
  }
}

bool is_held_by_worker(JobState state) {
  return state == JobState::kLeased || state == JobState::kRunning ||
         state == JobState::kCancelling;
}

}  // namespace

std::string Judge::Event::essence() const {
  return "job " + std::to_string(job) + " #" + std::to_string(job_seq) + ": " +
         (from ? std::string(server::name_of(*from)) + " -> " : "") +
         std::string(server::name_of(to)) + (fence > 0 ? " fence " + std::to_string(fence) : "") +
         (reinstated ? " reinstated" : "") +
         (reason == FailureReason::kNone ? "" : " " + std::string(server::name_of(reason)));
}

Judge::Event Judge::Event::read(const server::Statement& row) {
  Event event{.seq = row.integer(0),
              .job = row.integer(1),
              .job_seq = row.integer(2),
              .fence = row.integer(5),
              .to = static_cast<JobState>(row.small(4)),
              .reason = static_cast<FailureReason>(row.small(6)),
              .reinstated = row.integer(7) != 0};
  if (!row.is_null(3)) event.from = static_cast<JobState>(row.small(3));
  return event;
}

server::Statement& Judge::select_changes(const std::string& range) {
  return sql("SELECT seq, job_id, job_seq, from_state, to_state, fence, reason, reinstated "
             "FROM events WHERE type=1 AND " +
             range + " ORDER BY seq")
      .bind(newest_event_);
}

void Judge::follow_commit() {
  server::Rows rows(select_changes("seq>?"));
  while (rows.next()) {
    const Event event = Event::read(*rows);
    newest_event_ = event.seq;
    events_[event.seq] = event.essence();
    timeline_.record(event.essence());
    follow(event);
  }
  committed_orders_ = orders_;
  check_slots();
  check_quotas();
  check_sets();
}

void Judge::follow(const Event& event) {
  Job& job = jobs_[event.job];
  ++counts_[std::string(server::name_of(event.to))];
  if (event.job_seq != job.job_seq + 1)
    report_violation("I8", job, "its events have a gap: " + event.essence());
  job.job_seq = event.job_seq;
  job.changed_ms = timeline_.now();
  if (!event.from) return follow_birth(job, event);
  if (*event.from != job.state)
    report_violation("I8", job, "an event leaves another state: " + event.essence());
  if (server::is_final(job.state))
    report_violation("I3", job, "left a final state: " + event.essence());
  if (!is_allowed(*event.from, event.to, event.reinstated))
    report_violation("I3", job, "may not change like this: " + event.essence());
  if (job.cancelled && event.to != JobState::kCancelled)
    report_violation("I12", job, "changes after its cancel was acknowledged: " + event.essence());
  if (event.to == JobState::kCancelling ||
      (event.to == JobState::kCancelled && *event.from != JobState::kCancelling))
    check_cancel(job, event);
  const JobState before = job.state;
  job.state = event.to;
  if (event.reinstated) return follow_reinstatement(job, event);
  if (event.to == JobState::kLeased) return follow_grant(job, event);
  if (is_held_by_worker(before) && !is_held_by_worker(event.to)) follow_end_of_attempt(job, event);
  if (event.to == JobState::kSucceeded) follow_success(job, event);
  if (event.to == JobState::kFailed) follow_failure(job, event);
  if (job.set > 0) count_in_set(job, event);
}

void Judge::follow_birth(Job& job, const Event& event) {
  server::Rows row(sql("SELECT uid, name, tenant, action, owner_id, max_attempts, spec, set_id "
                       "FROM jobs WHERE id=?")
                       .bind(event.job));
  row.next();
  job.uid = row->text(0);
  job.name = row->text(1);
  job.tenant = row->text(2);
  job.action = row->text(3);
  job.owner = row->integer(4);
  job.max_attempts = row->small(5);
  job.spec.ParseFromString(row->text(6));
  job.state = event.to;
  row_of_uid_[job.uid] = event.job;
  if (!row->is_null(7)) follow_birth_in_set(job, row->integer(7), event.job);
  server::Rows waits(
      sql("SELECT on_job, condition FROM job_dependencies WHERE job_id=?").bind(event.job));
  while (waits.next())
    job.waits_for.emplace_back(waits->integer(0), static_cast<Condition>(waits->small(1)));
  if (event.to == JobState::kSucceeded) follow_success(job, event);
  if (job.set > 0) count_in_set(job, event);
}

void Judge::occupy(std::int64_t fence, std::int64_t job) {
  server::Rows row(
      sql("SELECT worker_id, device_ids, reserved_bytes FROM attempts WHERE fence=?").bind(fence));
  if (!row.next()) return;
  Open open{.job = job, .worker = row->text(0), .devices = {}, .reserved = row->integer(2)};
  std::string id;
  for (const char letter : row->text(1) + "\n") {
    if (letter == '\n' || letter == ',' || letter == ' ') {
      if (!id.empty()) open.devices.push_back(id);
      id.clear();
    } else {
      id += letter;
    }
  }
  open_[fence] = std::move(open);
}

void Judge::follow_grant(Job& job, const Event& event) {
  if (event.fence <= newest_fence_)
    report_violation("I4", job,
                     "was granted under fence " + std::to_string(event.fence) + " after " +
                         std::to_string(newest_fence_));
  newest_fence_ = std::max(newest_fence_, event.fence);
  job.fence = event.fence;
  ++job.grants;
  for (const auto& [fence, open] : open_)
    if (open.job == event.job) report_violation("I6", job, "was granted while an attempt is open");
  for (const auto& [on, condition] : job.waits_for) {
    const JobState state = jobs_[on].state;
    const bool is_met =
        condition == Condition::kSuccess ? state == JobState::kSucceeded : server::is_final(state);
    if (!is_met)
      report_violation("I1", job, "runs before job " + std::to_string(on) + " has ended");
  }
  occupy(event.fence, event.job);
  check_memory(event.fence);
  deadlines_[event.fence] = timeline_.now() + rules_.lease_ttl_ms;
}

void Judge::follow_reinstatement(Job& job, const Event& event) {
  ++counts_["reinstated"];
  if (event.fence != job.fence)
    report_violation("I5", job, "was reinstated under an old fence: " + event.essence());
  occupy(event.fence, event.job);
  deadlines_[event.fence] = timeline_.now() + rules_.lease_ttl_ms;
}

void Judge::follow_end_of_attempt(Job& job, const Event& event) {
  const std::int64_t fence = job.fence;
  const auto open = open_.find(fence);
  const std::string worker = open == open_.end() ? "" : open->second.worker;
  if (open_.erase(fence) == 0) report_violation("I6", job, "ended an attempt that was not open");
  if (event.fence != fence)
    report_violation("I5", job, "was ended by another fence: " + event.essence());
  server::Rows row(
      sql("SELECT outcome, counted, new_checkpoint, preempted FROM attempts WHERE fence=?")
          .bind(fence));
  if (!row.next()) return report_violation("I8", job, "has no attempt: " + event.essence());
  const auto outcome = static_cast<AttemptOutcome>(row->small(0));
  ++counts_["outcome " + std::to_string(static_cast<int>(outcome))];
  const auto deadline = deadlines_.find(fence);
  if (outcome == AttemptOutcome::kExpired && deadline != deadlines_.end() &&
      timeline_.now() < deadline->second)
    report_violation("I19", job,
                     "lost its lease " + std::to_string(deadline->second - timeline_.now()) +
                         " ms before its end");
  deadlines_.erase(fence);
  if (event.to == JobState::kFailed) check_attempts_used_up(job, outcome);
  const bool is_spared = row->integer(2) != 0 || !row->text(3).empty() || is_evicting(worker);
  if (outcome == AttemptOutcome::kFailed && row->integer(1) == 0 && !is_spared)
    report_violation("I13", job, "has a failed attempt without progress that does not count");
}

void Judge::check_attempts_used_up(const Job& job, AttemptOutcome outcome) {
  constexpr std::int32_t kMostFurtherGrants = 20;
  const bool had_all_grants = job.grants >= job.max_attempts + kMostFurtherGrants;
  if (outcome == AttemptOutcome::kReleased && !had_all_grants)
    report_violation("I13", job, "failed because a worker gave it back");
  server::Rows row(sql("SELECT attempts FROM jobs WHERE uid=?").bind(job.uid));
  if (outcome == AttemptOutcome::kExpired && !had_all_grants && row.next() &&
      row->small(0) < job.max_attempts)
    report_violation("I13", job, "failed with a lost worker before its attempts were used up");
}

void Judge::follow_success(Job& job, const Event& event) {
  job.artifacts = artifacts_of(event.job);
  server::Rows row(sql("SELECT taken_from FROM jobs WHERE id=?").bind(event.job));
  row.next();
  if (event.from == JobState::kRunning) {
    job.winner = job.fence;
    job.figure = figures_[static_cast<std::uint64_t>(job.fence)];
    const auto& made = made_[static_cast<std::uint64_t>(job.fence)];
    bool is_its_own = false;
    for (const std::string& digest : job.artifacts)
      is_its_own = is_its_own || made.contains(digest);
    if (!is_its_own)
      report_violation(
          "I5", job,
          "has a result that the engine of fence " + std::to_string(job.fence) + " did not make");
    return;
  }
  if (row->is_null(0))
    return report_violation("I2", job, "succeeded without a result: " + event.essence());
  ++counts_["took a result"];
  const Job& source = jobs_[row->integer(0)];
  job.figure = source.figure;
  if (source.state != JobState::kSucceeded || source.artifacts != job.artifacts)
    report_violation("I2", job, "took a result that is not the one of its source");
  if (source.action != job.action || job.action.empty())
    report_violation("I2", job, "took the result of a job that is not equal");
  if (source.tenant != job.tenant)
    report_violation("I15", job, "took the result of another tenant");
}

void Judge::follow_failure(const Job& job, const Event& event) {
  using enum FailureReason;
  const FailureReason reason = event.reason;
  if (event.from == JobState::kBlocked || event.from == JobState::kHeld) {
    bool is_hopeless = false;
    for (const auto& [on, condition] : job.waits_for) {
      const JobState state = jobs_[on].state;
      is_hopeless = is_hopeless || state == JobState::kFailed || state == JobState::kCancelled ||
                    (state == JobState::kSucceeded && job.spec.inputs_size() > 0);
    }
    if (reason != kDependency || !is_hopeless)
      report_violation("I1", job,
                       "failed although the jobs for which it waits did not: " + event.essence());
    return;
  }
  // The crash of an engine ends its own attempt alone, so a job fails for its own reasons or for
  // those of the machines.
  const auto& work = job.spec.test();
  bool is_explained = reason == kWorkerLost || reason == kStorage;
  if (work.has_exit()) {
    static constexpr std::array kReasons = {kInvalidInput, kNumerical, kGpuOom, kGpuFault};
    const int status = work.exit().status();
    is_explained = is_explained || (status >= 10 && status <= 13 &&
                                    reason == kReasons[static_cast<std::size_t>(status - 10)]);
  }
  if (work.has_signal() || job.was_crashed) is_explained = is_explained || reason == kChildCrashed;
  if (work.has_hang()) is_explained = is_explained || reason == kTimeLimit;
  if (work.has_garbage_ipc()) is_explained = is_explained || reason == kProtocol;
  if (!is_explained)
    report_violation("I17", job, "failed for a reason that is not its own: " + event.essence());
}

void Judge::check_slots() {
  std::map<std::pair<std::string, std::string>, std::int64_t> busy;
  for (const auto& [fence, open] : open_)
    for (const std::string& device : open.devices) ++busy[{open.worker, device}];
  for (const auto& [where, count] : busy) {
    const std::int64_t slots = machines_[where.first].devices[where.second].slots;
    if (count > slots)
      report_violation("I6", "the device " + where.first + "/" + where.second + " carries " +
                                 std::to_string(count) + " attempts in " + std::to_string(slots) +
                                 " slots");
  }
}

void Judge::check_quotas() {
  server::Rows rows(
      sql("SELECT owner_id, tenant, unfinished_jobs, running_gpus FROM usage_totals"));
  std::map<std::string, std::int64_t> gpus;
  while (rows.next()) {
    gpus[rows->text(1)] += rows->integer(3);
    if (rows->integer(2) > rules_.unfinished_jobs_of_user || rows->integer(3) > rules_.gpus_of_user)
      report_violation("I14", "principal " + std::to_string(rows->integer(0)) + " uses " +
                                  std::to_string(rows->integer(2)) + " jobs and " +
                                  std::to_string(rows->integer(3)) + " GPUs");
  }
  for (const auto& [tenant, count] : gpus)
    if (count > rules_.gpus_of_tenant)
      report_violation("I14", "tenant " + tenant + " uses " + std::to_string(count) + " GPUs");
}

}  // namespace quasi::sim
