#pragma once

// The story of a server on a disk whose power can be cut, and the answers that it gave.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/service/retention/result_limits.hpp"
#include "server/store/read_store.hpp"
#include "tests/service/server/results/acknowledged.hpp"
#include "tests/service/support/power_cut_disk.hpp"
#include "tests/service/support/queue_world.hpp"

namespace quasi::server::test {

/// The life of a server: a fixed sequence of commands, until the power is cut.
class ServerStory {
 public:
  ServerStory(PowerCutDisk& disk, std::uint64_t seed, FileSystem* files = nullptr)
      : disk_(disk), files_(files != nullptr ? *files : disk), random_(seed) {}

  void open() {
    world_ = std::make_unique<QueueWorld>(ServerDisk{.files = files_,
                                                     .root = kServerRoot,
                                                     .database = kServerRoot + "/quasi.db",
                                                     .vfs = disk_.vfs_name()},
                                          clock_, random_, options());
  }
  void close() { world_.reset(); }
  QueueWorld& world() { return *world_; }
  Acknowledged& told() { return told_; }

  static QueueOptions options() {
    return {.lease_ttl_ms = 2'000,
            .restart_grace_ms = 0,
            .requeue_delay_ms = 100,
            .retry_back_off_ms = 100,
            .quotas = {.user = {.unfinished_jobs = 3, .running_gpus = 2},
                       .tenant = {.running_gpus = 2}},
            .results = {.version = "test"}};
  }

  /// Submits a job with a request id that a client would repeat after a crash.
  void submit(int number) {
    pending_request_ = number;
    const std::string request = uuid_of(static_cast<std::uint64_t>(number));
    Submitted submitted;
    world_->run([&](WriteContext& write) {
      submitted = write.queue.apply(story_submission(request, number), write.now);
      if (!submitted.replayed)
        write.audit.append({.time_ms = write.now.wall_ms,
                            .method = "SubmitJobs",
                            .target = join_lines(submitted.uids),
                            .outcome = "OK"});
    });
    told_.job_of_request[request] = submitted.uids.at(0);
    pending_request_.reset();
    see_events();
  }

  /// Runs the whole sequence: grants, logs, checkpoints, failures, cancels, expired leases, garbage
  /// collection and a restart of the worker.
  void live() {
    const RegisterWorker worker = simple_gpu_worker("w_A", 1, 4);
    for (int i = 0; i < 6; ++i) submit(i);
    world_->apply(worker);
    const std::string input = put("a checkpoint");
    auto grants = acquire(worker, 100, 4);
    for (const Grant& grant : grants) world_->apply(StartAttempt{key_of(grant)});
    append(grants[0], "line one\n");
    append(grants[1], "another log\n");
    fold();
    append(grants[0], "line two\n");
    world_->apply(RecordCheckpoint{
        .key = key_of(grants[1]),
        .checkpoint = {.sequence = 1, .step = 7, .digest = input, .size_bytes = 12}});
    told_.checkpoints[grants[1].job.uid] = 1;
    succeed(grants[0], "the result of the first job");
    fail(grants[1], FailureReason::kWorkerLost);    // The job is retried.
    fail(grants[2], FailureReason::kInvalidInput);  // The job is not retried.
    cancel(grants[3].job.uid);                      // A running job becomes CANCELLING.
    world_->apply(CompleteAttempt{.key = key_of(grants[3]),
                                  .outcome = AttemptOutcome::kCancelled,
                                  .artifacts = {},
                                  .summary_json = {},
                                  .failure = {},
                                  .usage = {},
                                  .report_digest = "stopped"});
    told_.final_states[grants[3].job.uid] = JobState::kCancelled;
    see_events();
    submit(6);
    cancel(told_.job_of_request.at(uuid_of(6)));  // A queued job is CANCELLED.
    clock_.advance(200);
    world_->run([](WriteContext& write) { write.queue.tick(write.now); });
    auto more = acquire(worker, 101, 2);
    clock_.advance(3'000);  // The lease expires.
    world_->run([](WriteContext& write) { write.queue.tick(write.now); });
    see_events();
    if (!more.empty()) {  // A heartbeat reinstates the lease.
      world_->apply(Heartbeat{.worker_id = "w_A",
                              .incarnation = worker.worker.incarnation,
                              .attempts = {{.attempt_uid = more[0].attempt.uid,
                                            .fence = more[0].attempt.fence,
                                            .progress = "p"}},
                              .devices = {}});
      world_->apply(StartAttempt{key_of(more[0])});
      append(more[0], "back again\n");
      succeed(more[0], "the result of the second");
    }
    world_->engine.checkpoint(Database::Checkpoint::kPassive);
    submit(7);
    collect();
    fold();
    delete_job(grants[0]);
    delete_excess();
    world_->apply(simple_gpu_worker("w_A", 2, 4));  // The worker restarts.
    see_events();
    world_->engine.checkpoint(Database::Checkpoint::kTruncate);
    live_of_equal_jobs(simple_worker("w_C", 4, 8));
    submit(8);
    change_turns(told_.job_of_request.at(uuid_of(8)));
  }

  /// Submits equal jobs of two users of a tenant. The first fails, the next succeeds, and the
  /// others take its result.
  void live_of_equal_jobs(const RegisterWorker& worker) {
    world_->apply(worker);
    const auto run = [&](std::uint64_t acquire_id, std::size_t slots, const std::string& result) {
      for (const Grant& grant : acquire(worker, acquire_id, slots)) {
        world_->apply(StartAttempt{key_of(grant)});
        result.empty() ? fail(grant, FailureReason::kInvalidInput) : succeed(grant, result);
      }
    };
    run(200, 8, "of jobs before them");
    for (const int number : {61, 62, 64}) submit(number);
    run(201, 1, "");
    run(202, 1, "of equal jobs");
    submit(65);
    for (const std::uint64_t number : {61, 62, 64, 65}) {
      const std::string uid = told_.job_of_request.at(uuid_of(number));
      if (!told_.final_states.try_emplace(uid, JobState::kSucceeded).second) continue;
      told_.artifacts[uid] = {wire::sha256_hex("of equal jobs")};
    }
  }

  /// After the restart of the server: repeats the request that was in flight and finishes all work.
  void finish() {
    clock_.advance(60'000);
    if (pending_request_) submit(*pending_request_);
    if (!pending_deletion_.empty()) {
      world_->apply(deletion_of(pending_deletion_));
      told_.deleted.insert(pending_deletion_);
    }
    for (const auto& [request, uid] : told_.job_of_request) {
      const auto job = world_->engine.store().find_job(Scope::everything(), uid);
      if (job && job->state == JobState::kHeld) change_turn(uid, ChangeTurns::Act::kRelease);
    }
    told_.held.clear();
    told_.released.clear();
    delete_excess();
    EXPECT_TRUE(excess().empty()) << "the files of ended jobs still exceed the limit";
    collect_deleted();
    for (const auto& [request, uid] : std::map(told_.job_of_request)) {
      const auto job = world_->engine.store().find_job(Scope::everything(), uid);
      const auto again = world_->apply(story_submission(request, std::stoi(job->name)));
      EXPECT_TRUE(again.replayed);  // I7
      EXPECT_EQ(again.uids, std::vector<std::string>{uid});
    }
    world_->run([](WriteContext& write) { write.queue.tick(write.now); });
    const RegisterWorker worker = simple_gpu_worker("w_B", 3, 4);
    world_->apply(worker);
    std::int64_t last_fence = told_.fences.empty() ? 0 : *told_.fences.rbegin();
    for (std::uint64_t round = 0; round < 20; ++round) {
      clock_.advance(10'000);
      world_->apply(worker);
      world_->run([](WriteContext& write) { write.queue.tick(write.now); });
      const auto grants = acquire(worker, 1'000 + round, 4);
      if (grants.empty()) break;
      for (const Grant& grant : grants) {
        EXPECT_GT(grant.attempt.fence, last_fence);  // I4
        last_fence = std::max(last_fence, grant.attempt.fence);
        EXPECT_EQ(told_.cancelled.count(grant.job.uid), 0U) << "granted after a cancel";  // I12
        world_->apply(StartAttempt{key_of(grant)});
        succeed(grant, "made after the restart by " + grant.job.uid);
      }
    }
  }

  std::vector<Grant> acquire(const RegisterWorker& worker, std::uint64_t id, std::size_t slots) {
    auto grants = world_->apply(simple_acquire(worker, id, slots)).grants;
    for (const Grant& grant : grants) {
      EXPECT_TRUE(told_.fences.insert(grant.attempt.fence).second) << "a fence twice";  // I4
      if (told_.checkpoints.count(grant.job.uid) > 0) {
        EXPECT_TRUE(grant.checkpoint &&
                    grant.checkpoint->sequence >= told_.checkpoints[grant.job.uid]);
      }
    }
    for (const char* tenant : {"phonons", "devices"})
      EXPECT_LE(world_->engine.store().jobs_of_account(Account::of_tenant(tenant)).running_gpus, 2);
    see_events();
    return grants;
  }

  /// Reads the new events, as a watcher does after each commit.
  void see_events() {
    Statement rows(database(),
                   "SELECT seq, job_id, job_seq, to_state, fence FROM events WHERE seq>? "
                   "AND type=1 ORDER BY seq");
    rows.bind(told_.events.empty() ? 0 : told_.events.rbegin()->first);
    while (rows.step()) {
      EventRow event{.seq = rows.integer(0),
                     .job_id = rows.integer(1),
                     .job_seq = rows.integer(2),
                     .to = static_cast<JobState>(rows.small(3)),
                     .fence = rows.integer(4)};
      told_.events[event.seq] = essence(event);
    }
  }

  /// The bytes of a log, wherever they are.
  std::string log_bytes(const std::string& attempt_uid) {
    const auto attempt = world_->engine.store().find_attempt(attempt_uid);
    std::string bytes;
    world_->run([&](WriteContext& write) {
      bytes = write.queue.read_log(*attempt, 0, attempt->log_bytes);
    });
    return bytes;
  }

  Database& database() { return world_->engine.database(); }

 private:
  std::string put(const std::string& bytes) {
    const std::string digest = world_->put_blob(bytes);
    told_.blobs[digest] = bytes;
    return digest;
  }
  void append(const Grant& grant, const std::string& line) {
    const auto known = told_.logs.find(grant.attempt.uid);
    const std::string before = known == told_.logs.end() ? "" : known->second;
    const auto appended = world_->apply(AppendLog{
        .key = key_of(grant), .offset = static_cast<std::int64_t>(before.size()), .data = line});
    told_.logs[grant.attempt.uid] = before + line;
    EXPECT_EQ(appended.length, static_cast<std::int64_t>((before + line).size()));
  }
  void succeed(const Grant& grant, const std::string& bytes) {
    const std::string digest = put(bytes);
    world_->apply(
        CompleteAttempt{.key = key_of(grant),
                        .outcome = AttemptOutcome::kSucceeded,
                        .artifacts = {{.name = "result.h5",
                                       .digest = digest,
                                       .size_bytes = static_cast<std::int64_t>(bytes.size()),
                                       .media_type = ""}},
                        .summary_json = "{}",
                        .failure = {},
                        .usage = {},
                        .report_digest = "done" + digest});
    told_.final_states[grant.job.uid] = JobState::kSucceeded;
    told_.artifacts[grant.job.uid] = {digest};
    see_events();
  }
  void fail(const Grant& grant, FailureReason reason) {
    const auto after =
        world_->apply(CompleteAttempt{.key = key_of(grant),
                                      .outcome = AttemptOutcome::kFailed,
                                      .artifacts = {},
                                      .summary_json = {},
                                      .failure = {.reason = reason, .message = "as told"},
                                      .usage = {},
                                      .report_digest = "failed"});
    if (is_final(after.state)) told_.final_states[grant.job.uid] = after.state;
    see_events();
  }
  void cancel(const std::string& uid) {
    const auto cancelled = world_->apply(
        CancelJobs{.request_id = {}, .body_sha256 = {}, .uids = {uid}, .reason = "not wanted"});
    told_.cancelled.insert(uid);
    if (is_final(cancelled.states[0])) told_.final_states[uid] = cancelled.states[0];
    see_events();
  }
  void change_turn(const std::string& uid, ChangeTurns::Act act, std::int32_t priority = 0) {
    world_->apply(ChangeTurns{.request_id = {},
                              .body_sha256 = {},
                              .uids = {uid},
                              .act = act,
                              .reason = "not now",
                              .priority = priority});
  }
  /// Holds a waiting job, lowers its priority and releases it.
  void change_turns(const std::string& uid) {
    change_turn(uid, ChangeTurns::Act::kHold);
    told_.held.insert(uid);
    see_events();
    change_turn(uid, ChangeTurns::Act::kReprioritise, -3);
    told_.priorities[uid] = -3;
    told_.held.erase(uid);
    change_turn(uid, ChangeTurns::Act::kRelease);
    told_.released.insert(uid);
    see_events();
  }
  /// Deletes a job that succeeded, then collects its artefact and its log. The client repeats the
  /// request until it is answered.
  void delete_job(const Grant& grant) {
    const std::string& uid = grant.job.uid;
    pending_deletion_ = uid;
    forget(uid);
    world_->apply(deletion_of(uid));
    told_.deleted.insert(uid);
    pending_deletion_.clear();
    see_events();
    collect_deleted();
  }
  /// Forgets the answers about a job that may be deleted from now on.
  void forget(const std::string& uid) {
    SqliteStore& store = world_->engine.store();
    told_.final_states.erase(uid);
    for (const std::string& digest : std::exchange(told_.artifacts[uid], {}))
      told_.blobs.erase(digest);
    told_.artifacts.erase(uid);
    if (const auto job = store.find_job(Scope::everything(), uid))
      for (const std::string& attempt : store.attempts_of(job->id)) told_.logs.erase(attempt);
    told_.cancelled.erase(uid);
    told_.held.erase(uid);
    told_.released.erase(uid);
    told_.priorities.erase(uid);
    std::erase_if(told_.job_of_request, [&](const auto& job) { return job.second == uid; });
  }
  /// Returns the jobs that exceed a limit smaller than any result, as a reader chooses them.
  std::vector<ExcessResult> excess() {
    const RetentionOptions options{.total_result_bytes = 1, .result_grace_ms = 0};
    return excess_results(database(), result_limits(options, clock_.now().wall_ms + 1));
  }
  /// Keeps that limit, in transactions as the writer runs them. The server continues after a crash
  /// by itself, without a client that repeats a request.
  void delete_excess() {
    for (const ExcessResult& result : excess()) {
      forget(result.uid);
      world_->run([&](WriteContext& write) { delete_excess_result(write, result); });
      told_.deleted.insert(result.uid);
    }
    see_events();
    collect_deleted();
  }
  static DeleteJobs deletion_of(const std::string& uid) {
    return {.request_id = uuid_of(10'000),
            .body_sha256 = "deletion",
            .uids = {uid},
            .reason = "no longer needed"};
  }
  /// Moves logs into their files, as Writer and WorkPool do it.
  void fold() {
    std::vector<SqliteStore::LogToFold> logs;
    world_->run([&](WriteContext& write) { logs = write.store.logs_to_fold(0, 16); });
    for (const auto& log : logs) world_->logs.write(log.uid, log.folded_bytes, log.data);
    world_->run([&](WriteContext& write) { forget_folded(write.store, logs); });
  }
  /// One step of the housekeeping, as Writer and WorkPool run it.
  void collect_deleted() {
    Garbage garbage;
    // The rows of the audit from before the cut go.
    const RetentionOptions options{.blob_grace_ms = -1, .audit_ms = 30'000};
    world_->run([&](WriteContext& write) {
      choose_garbage(write, options, garbage);
      // The choice may survive a power cut before its answer.
      for (const std::string& digest : garbage.blobs) told_.blobs.erase(digest);
    });
    remove_files(garbage, world_->blobs, world_->logs);
    world_->run([&](WriteContext& write) { forget_removed(write.store, world_->blobs, garbage); });
  }
  /// Collects garbage in the steps of the housekeeping.
  void collect() {
    const std::string digest = world_->put_blob("no job refers to this");
    world_->run([&](WriteContext& write) {
      for (const std::string& found : write.store.unreferenced_blobs(write.now.wall_ms + 1, 10)) {
        write.store.set_blob_state(found, BlobState::kDeleting);
        told_.blobs.erase(found);
      }
    });
    world_->blobs.remove(digest);
    world_->run([&](WriteContext& write) { write.store.delete_blob(digest); });
    world_->run([&](WriteContext& write) {
      EXPECT_GT(write.audit.prune(write.now.wall_ms - 1'000, 256), 0);
    });
  }

  PowerCutDisk& disk_;
  FileSystem& files_;
  SeededRandom random_;
  FakeClock clock_;
  std::unique_ptr<QueueWorld> world_;
  Acknowledged told_;
  std::optional<int> pending_request_;
  std::string pending_deletion_;  ///< a job whose deletion has no answer yet
};

}  // namespace quasi::server::test
