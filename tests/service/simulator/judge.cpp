#include "tests/service/simulator/judge.hpp"

#include <algorithm>

namespace quasi::sim {

using server::Rows;

void Judge::report_violation(const std::string& invariant, const std::string& what) {
  timeline_.record("VIOLATION of " + invariant + ": " + what);
  if (violation_.empty())
    violation_ = invariant + " at event " + std::to_string(timeline_.events()) + ": " + what;
}

void Judge::report_violation(const std::string& invariant, const Job& job,
                             const std::string& what) {
  report_violation(invariant, "job " + job.name + " " + what);
}

void Judge::note_start(server::test::QueueWorld& world) {
  world_ = &world;
  statements_ = std::make_unique<server::StatementCache>(world.engine.database());
  opened_at_ms_ = timeline_.now();
  // Everything that was seen after its commit is still there.
  std::size_t present = 0;
  {
    Rows rows(select_changes("seq<=?"));
    while (rows.next()) {
      const Event event = Event::read(*rows);
      const auto known = events_.find(event.seq);
      if (known == events_.end() || known->second != event.essence())
        report_violation("I9",
                         "event " + std::to_string(event.seq) + " has become " + event.essence());
      else
        ++present;
    }
  }
  if (present != events_.size())
    report_violation("I1", std::to_string(events_.size() - present) + " committed events are gone");
  check_orders();
  // A commit whose answer was cut off may have taken effect; its events are followed now.
  follow_commit();
  for (const auto& [fence, open] : open_) {
    Rows row(sql("SELECT outcome FROM attempts WHERE fence=?").bind(fence));
    if (!row.next() || row->integer(0) != 0)
      report_violation(
          "I16", "the restart of the server ended the attempt of fence " + std::to_string(fence));
  }
  for (const auto& [fence, open] : open_)
    deadlines_[fence] = timeline_.now() + rules_.lease_ttl_ms + rules_.restart_grace_ms;
  check_told();
  check_files();
}

void Judge::note_stop() {
  statements_.reset();
  world_ = nullptr;
  // A server that has just started does not know yet which workers drain, nor their devices: each
  // worker tells it by registering.
  for (auto& [worker, machine] : machines_) {
    machine.drains = false;
    for (auto& [id, device] : machine.devices) device.state = v1::DEVICE_STATE_READY;
  }
}

void Judge::check_times() {
  check_back_offs();
  for (const auto& [fence, open] : open_) {
    const auto deadline = deadlines_.find(fence);
    if (deadline != deadlines_.end() && timeline_.now() > deadline->second + 2 * rules_.tick_ms &&
        timeline_.now() > opened_at_ms_ + 2 * rules_.tick_ms)
      report_violation("I19",
                       "the lease of fence " + std::to_string(fence) + " did not end in time");
  }
}

void Judge::check_accepted_call(server::WriteContext& write, const v1::AttemptRef& ref,
                                const char* call) {
  const auto attempt = write.store.find_attempt(ref.attempt_id());
  const auto job = attempt ? write.store.job(attempt->job_id) : std::nullopt;
  const auto fence = static_cast<std::int64_t>(ref.fence());
  if (!job || job->fence != fence || attempt->fence != fence ||
      attempt->outcome != AttemptOutcome::kOpen)
    report_violation("I5", std::string(call) + " of fence " + std::to_string(fence) +
                               " was accepted, and it does not hold its job");
}

void Judge::check_back_offs() {
  Rows rows(sql("SELECT id, attempts FROM jobs WHERE state=3 AND ready=0 AND grants>0"));
  while (rows.next()) {
    const Job& job = jobs_[rows->integer(0)];
    // Each attempt doubles the delay, and random numbers change it by a fifth. A restart of the
    // server may begin it anew.
    const std::int64_t longest_ms =
        std::max(rules_.requeue_delay_ms, (rules_.retry_back_off_ms << rows->small(1)) * 12 / 10);
    const std::int64_t since_ms = std::max(job.changed_ms, opened_at_ms_);
    if (timeline_.now() > since_ms + longest_ms + 2 * rules_.tick_ms)
      report_violation("I1", job,
                       "waits since " + std::to_string(timeline_.now() - since_ms) +
                           " ms for the end of a delay of " + std::to_string(longest_ms) + " ms");
  }
}

void Judge::check_recorded_checkpoint(const std::string& digest) {
  Rows row(sql("SELECT state FROM blobs WHERE digest=?").bind(digest));
  if (!row.next() || row->integer(0) != 1 || !world_->blobs.has(digest))
    report_violation("I11", "a checkpoint was recorded without its blob " + digest);
}

bool Judge::is_unstarted(const v1::AttemptRef& ref) {
  Rows row(sql("SELECT 1 FROM attempts a JOIN jobs j ON j.id=a.job_id WHERE a.uid=? AND "
               "a.outcome=0 AND a.fence=j.fence AND j.state=4")
               .bind(ref.attempt_id()));
  return row.next();
}

void Judge::check_refused_success(const v1::AttemptRef& ref) {
  if (is_unstarted(ref))
    report_violation("requests", "the success of fence " + std::to_string(ref.fence()) +
                                     " was reported before its start");
}

Judge::Report Judge::find_reported_attempt(server::WriteContext& write, const v1::AttemptRef& ref) {
  const auto attempt = write.store.find_attempt(ref.attempt_id());
  const auto fence = static_cast<std::int64_t>(ref.fence());
  if (!attempt || attempt->fence != fence) return {.fence = fence, .is_first = false};
  return {
      .fence = fence,
      .is_first = attempt->report_digest.empty() && attempt->outcome != AttemptOutcome::kReleased};
}

void Judge::check_accepted_report(server::WriteContext& write, const Report& report,
                                  JobState state) {
  Rows row(sql("SELECT j.fence, j.state, a.outcome FROM attempts a JOIN jobs j ON j.id=a.job_id "
               "WHERE a.fence=?")
               .bind(report.fence));
  if (!row.next())
    return report_violation(
        "I5", "a report of the unknown fence " + std::to_string(report.fence) + " was accepted");
  (void)write;
  if (!report.is_first) return;
  if (row->integer(0) != report.fence || row->integer(2) == 0 ||
      static_cast<JobState>(row->small(1)) != state)
    report_violation("I5", "the end of fence " + std::to_string(report.fence) +
                               " was accepted, and it did not hold its job");
}

void Judge::note_engine_crash(const std::string& uid) {
  const auto row = row_of_uid_.find(uid);
  if (row != row_of_uid_.end()) jobs_[row->second].was_crashed = true;
}

void Judge::note_devices(const std::string& worker, const std::vector<v1::Device>& devices,
                         bool drains, bool is_registration) {
  Machine& machine = machines_[worker];
  machine.drains = drains;
  for (const v1::Device& device : devices) {
    Device& known = machine.devices[device.id()];
    if (device.state() != v1::DEVICE_STATE_UNSPECIFIED) known.state = device.state();
    if (!is_registration) continue;
    known.slots = device.slots();
    known.memory = static_cast<std::int64_t>(device.memory_bytes());
    known.cuda = device.backend() == v1::DEVICE_BACKEND_CUDA;
  }
}

void Judge::check_grant(const server::AcquireLeases& request, const server::Grant& grant) {
  const std::string& worker = request.worker_id;
  const Machine& machine = machines_[worker];
  ++counts_["grants"];
  timeline_.record("fence " + std::to_string(grant.attempt.fence) + " of job " +
                   std::to_string(grant.attempt.job_id) + " goes to " + worker);
  const std::string what = "fence " + std::to_string(grant.attempt.fence) + " of " + worker;
  const std::set<std::string> devices(grant.attempt.device_ids.begin(),
                                      grant.attempt.device_ids.end());
  if (devices.size() != static_cast<std::size_t>(std::max(grant.job.gpus, 1)) ||
      devices.size() != grant.attempt.device_ids.size())
    report_violation("I6", what + " has another number of devices than its job wants");
  const bool is_new = granted_.insert(grant.attempt.fence).second;
  job_of_attempt_[grant.attempt.uid] = grant.attempt.job_id;
  if (is_new && is_closed(worker, "")) report_violation("orders", what + " is on a drained worker");
  const std::int64_t expected_ms = expected_time_ms(grant.job);
  const std::int64_t left_ms = request.time_left_ms.value_or(expected_ms);
  const bool may_checkpoint =
      grant.job.resume && grant.job.checkpoint_ms > 0 && 2 * grant.job.checkpoint_ms <= left_ms;
  if (is_new && expected_ms > left_ms && !may_checkpoint)
    report_violation("time", what + " has only " + std::to_string(left_ms) + " ms of " +
                                 std::to_string(expected_ms));
  if (is_new && machine.drains)
    report_violation("I6", what + " was granted to a worker that drains");
  for (const std::string& id : devices) {
    const auto found = machine.devices.find(id);
    if (found == machine.devices.end()) {
      report_violation("I6", what + " names an unknown device");
      continue;
    }
    if (is_new && found->second.state != v1::DEVICE_STATE_READY &&
        found->second.state != v1::DEVICE_STATE_BUSY_FOREIGN)
      report_violation("I6", what + " is on a device that must not be used");
    if (is_new && is_closed(worker, id))
      report_violation("orders", what + " is on a cordoned device");
    if (grant.job.gpus > 0 && !found->second.cuda) report_violation("I6", what + " is on a CPU");
    // Measurements of other jobs halve the stated memory at most.
    if (grant.job.memory_bytes / 2 > found->second.memory)
      report_violation("I6", what + " does not fit the memory of its device");
  }
  const auto job = row_of_uid_.find(grant.job.uid);
  const std::int64_t told = job == row_of_uid_.end() ? 0 : jobs_[job->second].recorded_checkpoint;
  if (grant.job.resume && told > (grant.checkpoint ? grant.checkpoint->sequence : 0))
    report_violation(
        "I1", what + " does not continue from the acknowledged checkpoint " + std::to_string(told));
}

void Judge::note_checkpoint(const v1::AttemptRef& ref, std::int64_t sequence) {
  // The answer may arrive while the server is down.
  auto& told = jobs_[job_of_attempt_.at(ref.attempt_id())].recorded_checkpoint;
  told = std::max(told, sequence);
  ++counts_["checkpoints"];
}

void Judge::note_log(const std::string& attempt, const std::string& bytes, std::int64_t offset,
                     std::int64_t length) {
  std::string& known = logs_[attempt];
  const auto end = static_cast<std::size_t>(offset) + bytes.size();
  if (static_cast<std::size_t>(offset) > known.size() || static_cast<std::size_t>(length) < end)
    return;
  if (end > known.size()) known = known.substr(0, static_cast<std::size_t>(offset)) + bytes;
}

void Judge::check_success_answer(const v1::AttemptRef& ref, JobState state) {
  if (state != JobState::kSucceeded) return;
  for (const auto& [row, job] : jobs_)
    if (job.fence == static_cast<std::int64_t>(ref.fence()) && job.state == JobState::kSucceeded)
      return;
  report_violation("I2", "fence " + std::to_string(ref.fence()) +
                             " was told that it succeeded, and another attempt has won");
}

void Judge::note_submission(const std::string& request, const Submission& submission) {
  recorded_[request] = submission;
}

void Judge::note_refusal(const std::string& request, bool was_acknowledged) {
  refused_.insert(request);
  if (was_acknowledged) report_violation("I7", "a repeated submission was refused: " + request);
}

void Judge::note_submission_answer(const std::string& request, const std::vector<std::string>& uids,
                                   const std::string& set) {
  for (const std::string& uid : uids) {
    const auto row = row_of_uid_.find(uid);
    const std::int64_t its_set = row == row_of_uid_.end() ? 0 : jobs_[row->second].set;
    if ((its_set == 0 ? "" : sets_[its_set].uid) != set)
      report_violation("I7", "the answer to " + request + " names another set: " + set);
  }
  if (uids.size() != recorded_[request].jobs)
    report_violation("I7", "the answer to " + request + " names another number of jobs");
  const auto known = answers_.try_emplace(request, uids).first;
  if (known->second != uids) report_violation("I7", "two answers to the request " + request);
}

void Judge::note_cancel_answer(const std::string& uid, JobState state) {
  const auto row = row_of_uid_.find(uid);
  if (row == row_of_uid_.end())
    return report_violation("I1", "a job that was cancelled is unknown: " + uid);
  Job& job = jobs_[row->second];
  ++counts_["cancelled"];
  if (!server::is_final(state) && state != JobState::kCancelling)
    report_violation("I12", job,
                     "was told to be " + std::string(server::name_of(state)) + " by its cancel");
  if (server::is_final(job.state)) {
    if (server::is_final(state) && state != job.state)
      report_violation("I12", job, "was told to be " + std::string(server::name_of(state)));
    if (state == JobState::kCancelling && job.state != JobState::kCancelled)
      report_violation("I12", job, "ended as another than CANCELLED after its cancel");
    return;
  }
  job.cancelled = state;
}

std::vector<std::string> Judge::unfinished() const {
  std::vector<std::string> names;
  for (const auto& [row, job] : jobs_) {
    if (server::is_final(job.state)) continue;
    std::string why;
    if (const auto now = world_ ? world_->engine.store().job(row) : std::nullopt)
      why = " on " + std::to_string(now->gpus) + " GPUs of " +
            std::to_string(now->memory_bytes >> 20) + " MiB, ready " + std::to_string(now->ready) +
            ", avoids '" + now->avoid_device + "', waits for " + std::to_string(now->unmet) +
            (now->set_waits ? " and for its set" : "");
    names.push_back(job.name + " is " + std::string(server::name_of(job.state)) + why);
  }
  return names;
}

bool Judge::has_unfinished() const {
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [](const auto& entry) { return !server::is_final(entry.second.state); });
}

std::vector<std::string> Judge::uids_with_workers() const {
  std::vector<std::string> uids;
  for (const auto& [fence, open] : open_) uids.push_back(jobs_.at(open.job).uid);
  return uids;
}

void Judge::judge_end() {
  for (const std::string& name : unfinished())
    report_violation("I1", "the job " + name + " for ever");
  for (const auto& [request, submission] : recorded_)
    if (!answers_.contains(request) && !refused_.contains(request))
      report_violation("I1", "a recorded submission has no answer: " + request);
  std::map<std::string, int> n_jobs_of_name;
  for (const auto& [row, job] : jobs_)
    if (++n_jobs_of_name[job.name] > 1) report_violation("I7", job, "exists twice");
  for (const auto& [fence, open] : open_)
    report_violation("I6", "the attempt of fence " + std::to_string(fence) + " is open for ever");
  check_database();
}

}  // namespace quasi::sim
