// Tests single rules of the queue: clocks, fences, placement.

#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

/// A queue with one worker of four slots and submitted jobs.
class Fences : public testing::Test {
 protected:
  Fences() {
    world_.apply(
        SubmitJobs{.request_id = uuid_of(1),
                   .body_sha256 = "b",
                   .jobs = {simple_job("a"), simple_job("b"), simple_job("c"), simple_job("d")}});
    world_.apply(worker_);
    world_.apply(other_worker_);
  }

  Grant grant() { return world_.apply(simple_acquire(worker_, ++acquires_, 1)).grants.at(0); }
  JobState state_of(const Grant& grant) {
    return world_.engine.store().find_job(Scope::everything(), grant.job.uid)->state;
  }
  void pass(std::int64_t ms) {
    clock_.advance(ms);
    world_.run([](WriteContext& write) { write.queue.tick(write.now); });
  }

  static CompleteAttempt report(const AttemptKey& key) {
    return {.key = key,
            .outcome = AttemptOutcome::kFailed,
            .artifacts = {},
            .summary_json = {},
            .failure = {.reason = FailureReason::kNumerical, .message = "no convergence"},
            .usage = {},
            .report_digest = "the report"};
  }

  /// Copies of `key` with one part from another attempt. Each must be refused.
  std::vector<AttemptKey> forged(const AttemptKey& key, const AttemptKey& other) const {
    AttemptKey older = key, newer = key, worker = key, attempt = key;
    older.fence = key.fence - 1;
    newer.fence = key.fence + 1;
    worker.worker_id = other_worker_.worker.id;
    attempt.attempt_uid = other.attempt_uid;
    return {older, newer, worker, attempt};
  }

  template <class Command>
  void expect_fenced(const Command& command, const char* call) {
    try {
      world_.apply(command);
      ADD_FAILURE() << call << " was obeyed for fence " << command.key.fence << " of "
                    << command.key.attempt_uid << " by " << command.key.worker_id;
    } catch (const Refused& refused) {
      EXPECT_EQ(refused.reason, "FENCED") << call;
      // Only a fence that this store never granted shows that the store was restored from an old
      // copy.
      EXPECT_EQ(refused.metadata.contains("future"),
                command.key.fence > world_.engine.store().newest_fence())
          << call;
    }
  }
  void expect_every_call_fenced(const AttemptKey& key) {
    expect_fenced(StartAttempt{key}, "StartAttempt");
    expect_fenced(AppendLog{.key = key, .offset = 0, .data = "x"}, "AppendLog");
    expect_fenced(RecordCheckpoint{.key = key, .checkpoint = {.sequence = 1}}, "RecordCheckpoint");
    expect_fenced(report(key), "CompleteAttempt");
    expect_fenced(ReleaseLease{.key = key, .reason = ReleaseReason::kDrain, .message = ""},
                  "ReleaseLease");
    const RegisterWorker& caller = key.worker_id == worker_.worker.id ? worker_ : other_worker_;
    const auto answer = world_.apply(Heartbeat{
        .worker_id = key.worker_id,
        .incarnation = caller.worker.incarnation,
        .attempts = {{.attempt_uid = key.attempt_uid, .fence = key.fence, .progress = "p"}},
        .devices = {}});
    EXPECT_EQ(answer.directives.at(0), Directive::kFenced) << "Heartbeat";
  }

  FakeClock clock_;
  SeededRandom random_{1};
  quasi::test::TemporaryDirectory root_;
  QueueWorld world_{{.files = system_files(), .root = root_.path()},
                    clock_,
                    random_,
                    {.lease_ttl_ms = 5'000, .requeue_delay_ms = 0}};
  const RegisterWorker worker_ = simple_worker("w_1", 1, 4);
  const RegisterWorker other_worker_ = simple_worker("w_2", 2, 4);
  std::uint64_t acquires_ = 0;
};

// I5: fence, attempt and worker must all be those of the grant, in every call.
TEST_F(Fences, AnOpenAttemptIsNamedByFenceAttemptAndWorkerTogether) {
  const Grant first = grant();
  const Grant second = grant();
  for (const AttemptKey& key : forged(key_of(second), key_of(first))) expect_every_call_fenced(key);
  EXPECT_EQ(state_of(second), JobState::kLeased);
  world_.apply(StartAttempt{key_of(second)});
  EXPECT_EQ(state_of(second), JobState::kRunning);
}

// Only the attempt itself gets the answer to a repeated report.
TEST_F(Fences, AReportIsNotRepeatedForAForgedKey) {
  const Grant first = grant();
  const Grant second = grant();
  EXPECT_EQ(world_.apply(report(key_of(second))).state, JobState::kFailed);
  EXPECT_EQ(world_.apply(report(key_of(second))).state, JobState::kFailed);
  for (const AttemptKey& key : forged(key_of(second), key_of(first))) expect_every_call_fenced(key);
}

// Only the attempt itself gets the answer to a repeated release.
TEST_F(Fences, AReleaseIsNotRepeatedForAForgedKey) {
  const Grant first = grant();
  const Grant second = grant();
  const ReleaseLease release{.key = key_of(second), .reason = ReleaseReason::kDrain, .message = ""};
  EXPECT_EQ(world_.apply(release).state, JobState::kQueued);
  EXPECT_EQ(world_.apply(release).state, JobState::kQueued);
  for (const AttemptKey& key : forged(key_of(second), key_of(first))) expect_every_call_fenced(key);
}

// An expired attempt is reinstated only while its job was not granted again. It is not reinstated
// after a later grant, even if that grant was released and the job waits again.
TEST_F(Fences, AnExpiredAttemptDoesNotComeBackAfterALaterGrant) {
  const Grant first = grant();
  pass(5'001);
  ASSERT_EQ(state_of(first), JobState::kQueued);
  const Grant second = grant();
  ASSERT_EQ(second.job.uid, first.job.uid);
  world_.apply(ReleaseLease{.key = key_of(second), .reason = ReleaseReason::kDrain, .message = ""});
  ASSERT_EQ(state_of(first), JobState::kQueued);
  expect_every_call_fenced(key_of(first));
  AttemptKey mixed = key_of(first);
  mixed.fence = key_of(second).fence;
  expect_every_call_fenced(mixed);
  EXPECT_EQ(state_of(first), JobState::kQueued);
}

TEST_F(Fences, AnExpiredAttemptComesBackUnderItsOwnKeyAlone) {
  const Grant first = grant();
  const Grant second = grant();
  pass(5'001);
  for (const AttemptKey& key : forged(key_of(second), key_of(first))) expect_every_call_fenced(key);
  EXPECT_EQ(state_of(second), JobState::kQueued);
  world_.apply(StartAttempt{key_of(second)});
  EXPECT_EQ(state_of(second), JobState::kRunning);
}

// A restarted worker keeps the attempts that it names by attempt and fence. The others return to
// the queue.
TEST_F(Fences, ARestartSalvagesOnlyWhatItNamesRightly) {
  const Grant right = grant();
  const Grant wrong_fence = grant();
  const Grant wrong_attempt = grant();
  RegisterWorker again = worker_;
  again.worker.incarnation = uuid_of(77);
  AttemptKey forged_fence = key_of(wrong_fence), forged_attempt = key_of(wrong_attempt);
  forged_fence.fence = key_of(right).fence;
  forged_attempt.attempt_uid = key_of(right).attempt_uid;
  again.salvage = {key_of(right), forged_fence, forged_attempt};
  const auto answer = world_.apply(again);
  EXPECT_EQ(answer.salvage,
            (std::vector{Directive::kContinue, Directive::kFenced, Directive::kFenced}));
  EXPECT_EQ(state_of(right), JobState::kLeased);
  EXPECT_EQ(state_of(wrong_fence), JobState::kQueued);
  EXPECT_EQ(state_of(wrong_attempt), JobState::kQueued);
}

// The grants of a repeated acquire go only to the worker that received them first.
TEST_F(Fences, AnotherWorkersAcquireIsNotAnsweredWithItsGrants) {
  const Grant first = grant();
  AcquireLeases stolen = simple_acquire(other_worker_, acquires_, 1);
  stolen.slots.clear();
  EXPECT_TRUE(world_.apply(stolen).grants.empty());
  EXPECT_EQ(world_.apply(simple_acquire(worker_, acquires_, 1)).grants.at(0).attempt.uid,
            first.attempt.uid);
}

// I19: jumps of the wall clock expire no lease.
TEST(Queue, WallClockJumpsExpireNothing) {
  constexpr std::int64_t kHour = 3'600'000, kDay = 24 * kHour, kYear = 365 * kDay;
  constexpr std::int64_t kTtl = 5'000;
  for (const std::int64_t jump : {kHour, -kHour, kDay, -kDay, -2 * kYear}) {
    FakeClock clock;
    SeededRandom random(1);
    const quasi::test::TemporaryDirectory root;
    QueueWorld world({.files = system_files(), .root = root.path()}, clock, random,
                     {.lease_ttl_ms = kTtl});
    world.apply(
        SubmitJobs{.request_id = uuid_of(1), .body_sha256 = "b", .jobs = {simple_job("a")}});
    const auto worker = simple_worker("w_1", 1, 1);
    world.apply(worker);
    const auto grant = world.apply(simple_acquire(worker, 1, 1)).grants.at(0);
    const auto state_after = [&](std::int64_t ms) {
      clock.time.monotonic_ms += ms;
      world.run([](WriteContext& write) { write.queue.tick(write.now); });
      return world.engine.store().find_job(Scope::everything(), grant.job.uid)->state;
    };
    clock.time.wall_ms += jump;
    EXPECT_EQ(state_after(kTtl - 1), JobState::kLeased)
        << "early after a jump of " << jump << " ms";
    EXPECT_EQ(state_after(2), JobState::kQueued) << "late after a jump of " << jump << " ms";
  }
}

/// Runs a job whose only attempt fails for a full disk, so that its retry waits for 3 s. The wall
/// clock is ahead of the truth by `ahead_then_ms` at that moment, and by `ahead_later_ms` after it.
class BackOff {
 public:
  BackOff(std::int64_t ahead_then_ms, std::int64_t ahead_later_ms) {
    start_server();
    world_->apply(
        SubmitJobs{.request_id = uuid_of(1), .body_sha256 = "b", .jobs = {simple_job("a")}});
    const auto grant = world_->apply(simple_acquire(worker_, 1, 1)).grants.at(0);
    clock_.time.wall_ms += ahead_then_ms;
    world_->apply(CompleteAttempt{.key = key_of(grant),
                                  .outcome = AttemptOutcome::kFailed,
                                  .artifacts = {},
                                  .summary_json = {},
                                  .failure = {.reason = FailureReason::kStorage, .message = "full"},
                                  .usage = {},
                                  .report_digest = "r"});
    clock_.time.wall_ms += ahead_later_ms - ahead_then_ms;
  }
  void advance(std::int64_t ms) { clock_.advance(ms); }
  /// Starts the server, anew if it runs, and registers the worker.
  void start_server() {
    world_.reset();
    world_.emplace(
        ServerDisk{.files = system_files(),
                   .root = root_.path(),
                   .database = (root_.path() / "quasi.db").string()},
        clock_, random_,
        QueueOptions{
            .lease_ttl_ms = 60'000, .requeue_delay_ms = 1'000, .retry_back_off_ms = 3'000});
    world_->apply(worker_);
  }
  /// Number of jobs that the worker is granted now.
  std::size_t grants() {
    world_->run([](WriteContext& write) { write.queue.tick(write.now); });
    return world_->apply(simple_acquire(worker_, ++acquires_, 1)).grants.size();
  }

 private:
  FakeClock clock_;
  SeededRandom random_{1};
  const quasi::test::TemporaryDirectory root_;
  std::optional<QueueWorld> world_;
  const RegisterWorker worker_ = simple_worker("w_1", 1, 1);
  int acquires_ = 1;
};

constexpr std::int64_t kDayMs = 86'400'000;

// A back-off is a length of time. A wall clock that was ahead at its beginning does not prolong it.
TEST(Queue, AWallClockThatWasAheadProlongsNoBackOff) {
  BackOff retry(kDayMs, 0);
  EXPECT_EQ(retry.grants(), 0U) << "before its time";
  retry.advance(4'000);
  EXPECT_EQ(retry.grants(), 1U);
}

// The back-off ends in time also after a restart of the server. The new server knows its end by the
// wall clock alone, which is a day away after the step.
TEST(Queue, AWallClockThatStepsBackBeforeARestartProlongsNoBackOff) {
  BackOff retry(kDayMs, 0);
  retry.start_server();
  EXPECT_EQ(retry.grants(), 0U) << "before its time";
  retry.advance(4'000);
  EXPECT_EQ(retry.grants(), 1U);
}

// A step of the wall clock to a later day does not end a back-off either.
TEST(Queue, AWallClockThatStepsForwardShortensNoBackOff) {
  BackOff retry(0, kDayMs);
  EXPECT_EQ(retry.grants(), 0U) << "before its time";
  retry.advance(1'000);
  EXPECT_EQ(retry.grants(), 0U) << "before its time";
  retry.advance(3'000);
  EXPECT_EQ(retry.grants(), 1U);
}

// A store restored from an old copy knows less than the workers. It does not grant a fence that a
// worker reports.
TEST(Queue, AFenceThatAWorkerNamesIsNotGivenOutAgain) {
  FakeClock clock;
  SeededRandom random(1);
  const quasi::test::TemporaryDirectory root;
  QueueWorld world({.files = system_files(), .root = root.path()}, clock, random, {});
  world.apply(SubmitJobs{.request_id = uuid_of(1),
                         .body_sha256 = "b",
                         .jobs = {simple_job("a"), simple_job("b"), simple_job("c")}});
  auto worker = simple_worker("w_1", 1, 4);
  worker.salvage = {
      {.worker_id = worker.worker.id, .attempt_uid = "a_of_the_lost_future", .fence = 500}};
  const auto registered = world.apply(worker);
  ASSERT_EQ(registered.salvage.size(), 1u);
  EXPECT_EQ(registered.salvage[0], Directive::kFenced);
  EXPECT_EQ(world.apply(simple_acquire(worker, 1, 1)).grants.at(0).attempt.fence, 501);
  // A lower fence changes nothing, and an absurdly high one does not exhaust the counter.
  for (const std::int64_t fence : {std::int64_t{7}, std::numeric_limits<std::int64_t>::max()}) {
    worker.salvage[0].fence = fence;
    world.apply(worker);
  }
  EXPECT_EQ(world.apply(simple_acquire(worker, 2, 1)).grants.at(0).attempt.fence, 502);
}

// A job of two GPUs avoids the GPU that failed only if one other machine has two.
TEST(Queue, AJobReturnsToAFaultyGpuIfNoOtherMachineHasEnough) {
  FakeClock clock;
  SeededRandom random(1);
  const quasi::test::TemporaryDirectory root;
  QueueWorld world({.files = system_files(), .root = root.path()}, clock, random, {});
  const RegisterWorker one = simple_gpu_worker("w_2", 2, 1);
  RegisterWorker two = simple_gpu_worker("w_1", 1, 1);
  two.worker.devices.push_back(two.worker.devices[0]);
  two.devices.push_back(two.devices[0]);
  two.worker.devices[1].id = two.devices[1].device.id = "gpu1";
  AcquireLeases acquire = simple_acquire(two, 1, 1);
  acquire.slots.push_back({.device_id = "gpu1"});
  world.apply(one);
  world.apply(two);
  NewJob job = simple_job("of two GPUs");
  job.row.gpus = 2;
  world.apply(SubmitJobs{.request_id = uuid_of(1), .body_sha256 = "b", .jobs = {job}});
  const Grant grant = world.apply(acquire).grants.at(0);
  CompleteAttempt report{.key = key_of(grant), .outcome = AttemptOutcome::kFailed};
  report.failure.reason = FailureReason::kGpuFault;
  report.report_digest = "a fault";
  world.apply(report);
  clock.advance(50'000);
  world.run([](WriteContext& write) { write.queue.tick(write.now); });
  world.apply(one);
  world.apply(two);
  acquire.acquire_id = uuid_of(2);
  EXPECT_EQ(world.apply(acquire).grants.size(), 1U);
}

// A job of N GPUs owns N slots on N devices. A job whose memory does not fit is not granted.
TEST(Queue, PlacesByDeviceMemoryAndNumber) {
  FakeClock clock;
  SeededRandom random(1);
  const quasi::test::TemporaryDirectory root;
  QueueWorld world({.files = system_files(), .root = root.path()}, clock, random, {});
  RegisterWorker worker = simple_worker("w_1", 1, 1);
  worker.worker.devices.clear();
  worker.devices.clear();
  for (const auto& [id, gib] : {std::pair<const char*, int>{"gpu0", 80}, {"gpu1", 24}}) {
    const DeviceRow device{.id = id,
                           .backend = Backend::kCuda,
                           .model = "fake",
                           .memory_bytes = std::int64_t{gib} << 30,
                           .slots = 1};
    worker.worker.devices.push_back(device);
    worker.devices.push_back({.device = device});
  }
  world.apply(worker);
  NewJob cpu = simple_job("cpu");
  cpu.row.device = Preference::kCpu;
  NewJob large = simple_job("large");
  large.row.gpus = 1;
  large.row.memory_bytes = std::int64_t{40} << 30;
  NewJob small = simple_job("small");
  small.row.gpus = 1;
  world.apply(
      SubmitJobs{.request_id = uuid_of(1), .body_sha256 = "b", .jobs = {cpu, large, small}});
  AcquireLeases acquire{.worker_id = "w_1",
                        .incarnation = worker.worker.incarnation,
                        .acquire_id = uuid_of(2),
                        .slots = {{.device_id = "gpu0"}, {.device_id = "gpu1"}}};
  const auto grants = world.apply(acquire).grants;
  ASSERT_EQ(grants.size(), 2U);
  EXPECT_EQ(grants[0].job.name, "large");
  EXPECT_EQ(grants[0].attempt.device_ids, std::vector<std::string>{"gpu0"});
  EXPECT_EQ(grants[1].job.name, "small");
  EXPECT_EQ(grants[1].attempt.device_ids, std::vector<std::string>{"gpu1"});
  for (const Grant& grant : grants)
    world.apply(ReleaseLease{.key = key_of(grant), .reason = ReleaseReason::kDrain, .message = ""});
  NewJob pair = simple_job("pair");
  pair.row.gpus = 2;
  pair.row.priority = 5;
  world.apply(SubmitJobs{.request_id = uuid_of(3), .body_sha256 = "b", .jobs = {pair}});
  acquire.acquire_id = uuid_of(4);
  const auto both = world.apply(acquire).grants;
  ASSERT_EQ(both.size(), 1U);
  EXPECT_EQ(both[0].attempt.device_ids.size(), 2U);
}

}  // namespace
}  // namespace quasi::server::test
