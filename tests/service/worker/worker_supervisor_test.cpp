// Tests the daemon's decisions against a simulated server that keeps the lease rules exactly. The
// test sets the time.

#include <gtest/gtest.h>

#include "proto/wire/digest.hpp"
#include "tests/service/support/worker_world.hpp"

namespace quasi::test {
namespace {

using JobState = WorkerWorld::JobState;

class WorkerSupervisor : public testing::Test {
 protected:
  void TearDown() override {
    for (const auto& violation : world.violations) ADD_FAILURE() << violation;
    if (HasFailure())
      for (const auto& line : world.log.lines) std::cerr << line << '\n';
  }
  WorkerWorld world;
};

TEST_F(WorkerSupervisor, RunsWhatIsSubmittedAndClearsUp) {
  auto& job = world.submit("noop", "bytes of the deck");
  world.start_daemon();
  ASSERT_TRUE(world.run_until_all_over());
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.grants, 1);
  EXPECT_EQ(job.log, "working on noop\n");
  std::map<std::string, std::string> digests;
  for (const auto& artifact : job.artifacts) digests[artifact.name()] = artifact.digest();
  EXPECT_EQ(digests["result.txt"], wire::sha256_hex("the result of j_1"));
  EXPECT_EQ(digests["T300K/BTE.kappa"], wire::sha256_hex("of 300 K"));
  EXPECT_EQ(digests.count("manifest.json"), 1U);
  EXPECT_EQ(digests.count("summary.json"), 1U);
  EXPECT_TRUE(world.files.list("/state/attempts").empty());
  EXPECT_TRUE(world.files.list("/state/kept").empty());
}

TEST_F(WorkerSupervisor, AnInputIsFetchedOnce) {
  world.submit("noop", "the same deck");
  world.submit("noop", "the same deck");
  world.start_daemon();
  ASSERT_TRUE(world.run_until_all_over());
  EXPECT_EQ(world.files.list("/state/cache").size(), 1U);
}

TEST_F(WorkerSupervisor, ReportsWhyAnEngineFailed) {
  auto& invalid = world.submit("invalid");
  auto& crash = world.submit("crash");
  world.start_daemon();
  ASSERT_TRUE(world.run_until_all_over());
  EXPECT_EQ(invalid.reason, v1::FAILURE_REASON_INVALID_INPUT);
  EXPECT_EQ(invalid.grants, 1);
  EXPECT_EQ(crash.reason, v1::FAILURE_REASON_CHILD_CRASHED);
  EXPECT_EQ(crash.grants, 3);
}

TEST_F(WorkerSupervisor, ACancelReachesAStubbornChild) {
  auto& job = world.submit("hang");
  world.start_daemon();
  ASSERT_TRUE(world.run_until([&] { return job.state == JobState::kRunning; }));
  world.cancel(job.id);
  ASSERT_TRUE(world.run_until_all_over());
  EXPECT_EQ(job.state, JobState::kCancelled);
}

TEST_F(WorkerSupervisor, SlotsThatComeFreeWhileAPollWaitsAreOfferedToo) {
  WorkerWorld two(2);
  auto& first = two.submit("hang");
  two.start_daemon();
  ASSERT_TRUE(two.run_until([&] { return first.state == JobState::kRunning; }));
  // The open poll names one slot; then the other slot becomes free.
  two.cancel(first.id);
  ASSERT_TRUE(two.run_until_all_over());
  auto& second = two.submit("hang");
  auto& third = two.submit("hang");
  ASSERT_TRUE(two.run_until(
      [&] { return second.state == JobState::kRunning && third.state == JobState::kRunning; }));
  EXPECT_TRUE(two.violations.empty());
}

// An unreachable server ends no attempt: the child continues, and its report waits.
TEST_F(WorkerSupervisor, ALostServerEndsNoAttempt) {
  auto& job = world.submit("noop");
  world.start_daemon();
  ASSERT_TRUE(world.run_until([&] { return job.state == JobState::kRunning; }));
  world.server_reachable = false;
  for (int i = 0; i < 200; ++i) world.step();
  EXPECT_EQ(world.supervisor().attempts(), 1U);
  world.server_reachable = true;
  ASSERT_TRUE(world.run_until_all_over());
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.grants, 1) << "the lease had expired but was not granted again: reinstated";
  EXPECT_EQ(job.executions, 1);
}

TEST_F(WorkerSupervisor, AFencedAttemptIsKilledAndKept) {
  auto& job = world.submit("hang");
  world.start_daemon();
  ASSERT_TRUE(world.run_until([&] { return job.state == JobState::kRunning; }));
  const auto fence = job.fence;
  job.open = false;  // another worker was granted the job and finished it
  job.fence = 1000;
  job.state = JobState::kSucceeded;
  ASSERT_TRUE(world.run_until([&] { return world.supervisor().attempts() == 0; }));
  EXPECT_EQ(world.files.list("/state/kept"), std::vector<std::string>{std::to_string(fence)});
  // The directory is kept for one day.
  world.advance(std::chrono::hours(25));
  world.step();
  EXPECT_TRUE(world.files.list("/state/kept").empty());
}

// A heartbeat without an answer must leave time for another one before the lease ends. A long lease
// needs no long wait.
TEST_F(WorkerSupervisor, AHeartbeatWaitsHalfALeaseWithinBounds) {
  const std::map<Milliseconds, Milliseconds> limit_of{
      {Milliseconds(500), Milliseconds(1'000)},
      {Milliseconds(6'000), Milliseconds(3'000)},
      {Milliseconds(3'600'000), Milliseconds(10'000)}};
  for (const auto& [lease, limit] : limit_of) {
    WorkerWorld other;
    other.lease_ttl = lease;
    other.start_daemon();
    ASSERT_TRUE(other.run_until([&] { return other.heartbeat_limit.count() > 0; }));
    EXPECT_EQ(other.heartbeat_limit, limit) << "lease " << lease.count() << " ms";
  }
}

// With a full disk the worker takes no work, reports it in the log and to users, and recovers by
// itself.
TEST_F(WorkerSupervisor, AFullDiskIsSaidAndTakesNoWork) {
  world.scratch_shortage = "/state has 3 MiB free";
  world.start_daemon();
  ASSERT_TRUE(world.run_until([&] { return world.heartbeat_limit.count() > 0; }));
  auto& job = world.submit("noop");
  world.advance(std::chrono::minutes(1));
  for (int i = 0; i < 50; ++i) world.step();
  EXPECT_EQ(job.grants, 0);
  EXPECT_EQ(world.shown_state, v1::DEVICE_STATE_BUSY_FOREIGN);
  EXPECT_EQ(world.shown_reason, world.scratch_shortage);
  const auto said = [&] {
    return std::count_if(
        world.log.lines.begin(), world.log.lines.end(),
        [&](const std::string& line) { return line.find("3 MiB free") != std::string::npos; });
  };
  EXPECT_EQ(said(), 1) << "once, not at every look";
  world.scratch_shortage.clear();
  ASSERT_TRUE(world.run_until_all_over());
  EXPECT_EQ(job.state, JobState::kSucceeded);
  // The disk is also checked while a poll waits at the server.
  world.scratch_shortage = "/state has 3 MiB free";
  ASSERT_TRUE(world.run_until([&] { return said() == 2; }));
}

TEST_F(WorkerSupervisor, DrainReleasesAfterTheCheckpoint) {
  auto& job = world.submit("hang");
  world.start_daemon();
  ASSERT_TRUE(world.run_until([&] { return job.state == JobState::kRunning; }));
  world.supervisor().drain();
  ASSERT_TRUE(world.run_until([&] { return world.supervisor().finished(); }));
  EXPECT_EQ(job.releases, std::vector<v1::ReleaseReason>{v1::RELEASE_REASON_DRAIN});
  EXPECT_EQ(job.state, JobState::kQueued);
}

// A worker whose time ends, e.g. that of its allocation, tells the server how much is left and
// drains by itself. Its job writes a checkpoint and waits again.
TEST_F(WorkerSupervisor, AWorkerDrainsAtTheEndOfItsTime) {
  world.time_left = Milliseconds(3'600'000);
  world.start_daemon();
  auto& job = world.submit("hang");
  ASSERT_TRUE(world.run_until([&] { return job.state == JobState::kRunning; }));
  ASSERT_TRUE(world.told_time_left);
  EXPECT_GT(*world.told_time_left, Milliseconds(3'590'000));
  EXPECT_LE(*world.told_time_left, Milliseconds(3'600'000));
  const auto since = world.clock.now();
  ASSERT_TRUE(world.run_until([&] { return world.supervisor().finished(); }));
  EXPECT_GE(world.clock.now() - since, std::chrono::minutes(59));
  EXPECT_EQ(job.releases, std::vector<v1::ReleaseReason>{v1::RELEASE_REASON_DRAIN});
  EXPECT_EQ(job.state, JobState::kQueued);
}

TEST_F(WorkerSupervisor, AnIdleWorkerLeaves) {
  world.idle_timeout = Milliseconds(300'000);
  auto& job = world.submit("steps");
  world.start_daemon();
  ASSERT_TRUE(world.run_until([&] { return job.state == JobState::kSucceeded; }));
  const auto since = world.clock.now();
  ASSERT_TRUE(world.run_until([&] { return world.supervisor().finished(); }));
  EXPECT_GE(world.clock.now() - since, std::chrono::minutes(4));
  EXPECT_LE(world.clock.now() - since, std::chrono::minutes(6));
}

// The drain breaks off the poll, but the server may have granted a job before it knew.
TEST_F(WorkerSupervisor, AGrantThatCrossesTheDrainIsGivenBack) {
  world.start_daemon();
  for (int i = 0; i < 20; ++i) world.step();
  auto& job = world.submit("noop");
  ASSERT_TRUE(world.run_until([&] { return job.state == JobState::kLeased; }));
  world.supervisor().drain();
  ASSERT_TRUE(world.run_until([&] { return world.supervisor().finished(); }));
  EXPECT_FALSE(job.open);
  EXPECT_EQ(job.executions, 0);
}

// The answer with the grant is lost, and the drain comes before the poll is repeated. The worker
// repeats the poll once under its id and releases the unknown grant.
TEST_F(WorkerSupervisor, AGrantWhoseAnswerWasLostIsGivenBackByTheDrain) {
  world.start_daemon();
  for (int i = 0; i < 20; ++i) world.step();
  world.lose_next_grants = true;
  auto& job = world.submit("noop");
  ASSERT_TRUE(world.run_until([&] { return job.state == JobState::kLeased; }));
  ASSERT_FALSE(world.lose_next_grants);
  world.step();  // the worker sees that the call failed and will repeat it
  const auto granted_at = world.clock.now();
  world.supervisor().drain();
  ASSERT_TRUE(world.run_until([&] { return world.supervisor().finished(); }));
  EXPECT_FALSE(job.open);
  EXPECT_EQ(job.releases, std::vector<v1::ReleaseReason>{v1::RELEASE_REASON_UNWANTED});
  EXPECT_EQ(job.executions, 0);
  EXPECT_LT(world.clock.now() - granted_at, world.lease_ttl) << "it waited for the lease to end";
}

// With an unreachable server the worker cannot learn of grants; it does not wait for long.
TEST_F(WorkerSupervisor, ADrainWithoutAServerEnds) {
  world.start_daemon();
  for (int i = 0; i < 20; ++i) world.step();
  world.server_reachable = false;
  const auto since = world.clock.now();
  world.supervisor().drain();
  ASSERT_TRUE(world.run_until([&] { return world.supervisor().finished(); }));
  EXPECT_LE(world.clock.now() - since, world.lease_ttl + Milliseconds(500));
}

// With an unreachable server a result cannot be reported. It is recorded, so the next start reports
// it. The drain ends when its time is over and no engine runs.
TEST_F(WorkerSupervisor, ADrainLeavesReportsToTheNextStart) {
  auto& job = world.submit("noop");
  world.start_daemon();
  ASSERT_TRUE(world.run_until([&] { return job.executions == 1; }));
  world.server_reachable = false;
  ASSERT_TRUE(world.run_until([&] {
    return world.files.exists("/state/attempts/" + std::to_string(job.fence) + "/outcome.pb");
  }));
  const auto since = world.clock.now();
  world.supervisor().drain();
  ASSERT_TRUE(world.run_until([&] {
    return world.supervisor().finished() || world.clock.now() - since > std::chrono::hours(1);
  }));
  EXPECT_TRUE(world.supervisor().finished()) << "the drain has no end";
  EXPECT_GE(world.clock.now() - since, world.engine.times.drain_timeout);
  EXPECT_LE(world.clock.now() - since, world.engine.times.drain_timeout + Milliseconds(60'000));
  std::mt19937_64 random(1);
  world.kill_daemon(Loss::kNothing, random);
  world.server_reachable = true;
  world.start_daemon();
  ASSERT_TRUE(world.run_until_all_over());
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.executions, 1);
}

// If the disk has no room for the record of a grant, the lease is released and costs the job no
// attempt.
TEST_F(WorkerSupervisor, ALeaseThatCannotBeRecordedIsGivenBack) {
  world.start_daemon();
  for (int i = 0; i < 20; ++i) world.step();
  auto& job = world.submit("noop");
  world.files.refuse_writes = true;
  ASSERT_TRUE(world.run_until([&] { return !job.releases.empty() || job.grants > 1; }));
  EXPECT_EQ(job.releases.size(), 1U) << "the lease was left to expire";
  world.files.refuse_writes = false;
  ASSERT_TRUE(world.run_until_all_over());
  EXPECT_EQ(job.state, JobState::kSucceeded);
}

TEST_F(WorkerSupervisor, ARestartSalvagesAFinishedResult) {
  auto& job = world.submit("noop");
  world.start_daemon();
  ASSERT_TRUE(world.run_until([&] {
    return world.files.exists("/state/attempts/" + std::to_string(job.fence) + "/outcome.pb");
  }));
  std::mt19937_64 random(1);
  world.kill_daemon(Loss::kEverything, random);
  world.start_daemon();
  ASSERT_TRUE(world.run_until_all_over());
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.executions, 1);
  EXPECT_EQ(job.grants, 1);
}

// The engine started and finished while the server was unreachable, so the server never saw
// StartAttempt. Then the daemon died. A success counts only after StartAttempt; without it the
// server would refuse the result.
TEST_F(WorkerSupervisor, ARestartSalvagesAResultWhoseStartWasNeverHeard) {
  auto& job = world.submit("noop");
  world.start_daemon();
  ASSERT_TRUE(world.run_until([&] { return job.executions == 1; }));
  ASSERT_EQ(job.state, JobState::kLeased);
  world.server_reachable = false;
  ASSERT_TRUE(world.run_until([&] {
    return world.files.exists("/state/attempts/" + std::to_string(job.fence) + "/outcome.pb");
  }));
  std::mt19937_64 random(1);
  world.kill_daemon(Loss::kEverything, random);
  world.server_reachable = true;
  world.start_daemon();
  ASSERT_TRUE(world.run_until_all_over());
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.executions, 1) << "the finished result was computed again";
  EXPECT_EQ(job.grants, 1);
}

TEST_F(WorkerSupervisor, ACheckpointThatWasNeverAnnouncedIsResumed) {
  auto& job = world.submit("silent");
  world.start_daemon();
  ASSERT_TRUE(world.run_until_all_over());
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.checkpoint.step(), 7);
  EXPECT_EQ(job.executions, 2);
}

TEST_F(WorkerSupervisor, ADyingConnectionCostsNeitherLogNorCheckpoint) {
  const auto cancelled = grpc::StatusCode::CANCELLED, internal = grpc::StatusCode::INTERNAL,
             unknown = grpc::StatusCode::UNKNOWN;
  auto& job = world.submit("silent");
  world.dying_connections = {cancelled, internal, unknown, unknown,  cancelled,
                             internal,  internal, unknown, cancelled};
  world.start_daemon();
  ASSERT_TRUE(world.run_until_all_over());
  EXPECT_TRUE(world.dying_connections.empty());
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.log, "working on silent\n");
  EXPECT_EQ(job.checkpoint.step(), 7);
  EXPECT_EQ(job.executions, 2);
}

TEST_F(WorkerSupervisor, ARestartUploadsTheCheckpointAndReleases) {
  auto& job = world.submit("steps");
  world.start_daemon();
  ASSERT_TRUE(world.run_until([&] {
    return world.files.exists("/state/attempts/" + std::to_string(job.fence) + "/ckpt/ckpt-3");
  }));
  std::mt19937_64 random(1);
  world.kill_daemon(Loss::kNothing, random);
  world.start_daemon();
  ASSERT_TRUE(world.run_until_all_over());
  EXPECT_EQ(job.releases, std::vector<v1::ReleaseReason>{v1::RELEASE_REASON_RESTART});
  EXPECT_GE(job.checkpoint.step(), 3);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.executions, 2);
}

}  // namespace
}  // namespace quasi::test
