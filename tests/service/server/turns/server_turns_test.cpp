// Tests the turns of jobs: holding, releasing and priorities.

#include <gtest/gtest.h>

#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

using Act = ChangeTurns::Act;

/// A queue on a disk, which can be opened again, and a worker of four slots.
class Turns : public testing::Test {
 protected:
  Turns() { open(); }

  void open() {
    world_.reset();
    world_ = std::make_unique<QueueWorld>(
        ServerDisk{.files = system_files(),
                   .root = root_.path().string(),
                   .database = (root_.path() / "quasi.db").string()},
        clock_, random_, QueueOptions{.lease_ttl_ms = 5'000, .requeue_delay_ms = 30'000});
    world_->apply(worker_);
  }
  std::string submit(const std::string& name, std::int64_t not_before_ms = 0) {
    NewJob job = simple_job(name);
    job.row.not_before_ms = not_before_ms;
    return world_
        ->apply(SubmitJobs{.request_id = uuid_of(++requests_), .body_sha256 = "b", .jobs = {job}})
        .uids.at(0);
  }
  TurnsChanged change(const std::vector<std::string>& uids, Act act, std::int32_t priority = 0) {
    return world_->apply(ChangeTurns{.request_id = {},
                                     .body_sha256 = {},
                                     .uids = uids,
                                     .act = act,
                                     .reason = {},
                                     .priority = priority});
  }
  /// Expects that a change is refused. @return the reason and the message
  std::pair<std::string, std::string> refused(const ChangeTurns& command) {
    try {
      world_->apply(command);
    } catch (const Refused& refusal) {
      return {refusal.reason, refusal.what()};
    }
    ADD_FAILURE() << "was not refused";
    return {};
  }
  std::vector<Grant> acquire(std::size_t slots = 4) {
    return world_->apply(simple_acquire(worker_, ++requests_, slots)).grants;
  }
  JobRow row(const std::string& uid) {
    return *world_->engine.store().find_job(Scope::everything(), uid);
  }
  void pass(std::int64_t ms) {
    clock_.advance(ms);
    world_->run([](WriteContext& write) { write.queue.tick(write.now); });
  }
  /// Grants the only job and lets its lease expire, so that it is in a back-off of 30 s.
  Grant expire() {
    const Grant grant = acquire().at(0);
    world_->apply(StartAttempt{key_of(grant)});
    pass(5'001);
    EXPECT_EQ(row(grant.job.uid).state, JobState::kQueued);
    EXPECT_FALSE(row(grant.job.uid).ready);
    return grant;
  }

  FakeClock clock_;
  SeededRandom random_{1};
  quasi::test::TemporaryDirectory root_;
  const RegisterWorker worker_ = simple_worker("w_1", 1, 4);
  std::uint64_t requests_ = 0;
  std::unique_ptr<QueueWorld> world_;
};

// A held job is not granted, also after a restart, until it is released. Both acts may be repeated,
// and each change of the state has one event (I8).
TEST_F(Turns, AHeldJobIsGrantedOnceItIsReleased) {
  const std::string held = submit("held"), other = submit("other");
  EXPECT_EQ(change({held, held}, Act::kHold).jobs.at(1).state, JobState::kHeld);
  EXPECT_EQ(row(held).job_seq, 2);
  open();
  const auto grants = acquire();
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].job.uid, other);
  EXPECT_EQ(change({held}, Act::kRelease).jobs.at(0).state, JobState::kQueued);
  EXPECT_EQ(change({held}, Act::kRelease).jobs.at(0).state, JobState::kQueued);
  EXPECT_EQ(row(held).job_seq, 3);
  EXPECT_EQ(acquire().at(0).job.uid, held);
}

// A back-off goes on while the job is held. It ends on the monotonic clock, across a restart, and
// whatever the wall clock shows.
TEST_F(Turns, AHeldJobKeepsItsBackOff) {
  const std::string uid = submit("job");
  expire();
  change({uid}, Act::kHold);
  open();
  clock_.time.wall_ms -= 3'600'000;
  pass(20'000);
  change({uid}, Act::kRelease);
  EXPECT_TRUE(acquire().empty()) << "granted before the end of its back-off";
  change({uid}, Act::kHold);
  pass(10'001);
  EXPECT_TRUE(acquire().empty()) << "a held job was granted";
  EXPECT_TRUE(row(uid).ready);
  change({uid}, Act::kRelease);
  EXPECT_EQ(acquire().at(0).job.uid, uid);
}

// A job whose time comes while it is held is ready when it is released.
TEST_F(Turns, AHeldJobKeepsItsEarliestTime) {
  const std::string uid = submit("later", clock_.time.wall_ms + 10'000);
  change({uid}, Act::kHold);
  change({uid}, Act::kRelease);
  EXPECT_TRUE(acquire().empty());
  change({uid}, Act::kHold);
  pass(10'001);
  change({uid}, Act::kRelease);
  EXPECT_EQ(acquire().at(0).job.uid, uid);
}

// The attempt of an expired lease goes on if its worker comes back, although the job is held.
TEST_F(Turns, AWorkerThatComesBackEndsTheHold) {
  const std::string uid = submit("job");
  const Grant grant = expire();
  change({uid}, Act::kHold);
  const auto answer = world_->apply(Heartbeat{.worker_id = worker_.worker.id,
                                              .incarnation = worker_.worker.incarnation,
                                              .attempts = {{.attempt_uid = grant.attempt.uid,
                                                            .fence = grant.attempt.fence,
                                                            .progress = ""}},
                                              .devices = {}});
  EXPECT_EQ(answer.directives.at(0), Directive::kContinue);
  EXPECT_EQ(row(uid).state, JobState::kRunning);
}

// A call changes all of its jobs or none. Jobs that a worker has, and jobs that have ended, are
// refused with the remedy.
TEST_F(Turns, OnlyWaitingJobsAreHeld) {
  const std::string running = submit("running");
  ASSERT_EQ(acquire(1).size(), 1U);
  const std::string waiting = submit("waiting");
  const ChangeTurns both{
      .request_id = {}, .body_sha256 = {}, .uids = {waiting, running}, .reason = {}};
  EXPECT_EQ(refused(both),
            std::pair(std::string("WRONG_STATE"),
                      "job " + running +
                          " is LEASED; only jobs that wait for a worker are held; cancel it "
                          "instead"));
  EXPECT_EQ(row(waiting).state, JobState::kQueued);
  ChangeTurns other = both;
  other.act = Act::kRelease;
  EXPECT_EQ(refused(other).second,
            "job " + running + " is LEASED; only jobs that are held are released");
  world_->apply(CancelJobs{.request_id = {}, .body_sha256 = {}, .uids = {waiting}, .reason = ""});
  other = both;
  other.act = Act::kReprioritise;
  EXPECT_EQ(refused(other).second,
            "job " + waiting + " is CANCELLED; only jobs that have not ended have a turn");
  other.uids = {"j_unknown"};
  EXPECT_EQ(refused(other).first, "JOB");
}

// A held job is cancelled like any other waiting job (I12).
TEST_F(Turns, AHeldJobIsCancelled) {
  const std::string uid = submit("job");
  change({uid}, Act::kHold);
  world_->apply(CancelJobs{.request_id = {}, .body_sha256 = {}, .uids = {uid}, .reason = ""});
  EXPECT_EQ(row(uid).state, JobState::kCancelled);
  EXPECT_TRUE(acquire().empty());
}

// Each change of a priority has one event, which is no change of the state (I8).
TEST_F(Turns, AChangedPriorityIsAnEvent) {
  const std::string uid = submit("job");
  ChangeTurns raise{.request_id = {},
                    .body_sha256 = {},
                    .uids = {uid, uid},
                    .act = Act::kReprioritise,
                    .reason = {},
                    .priority = 7,
                    .may_raise = true};
  world_->apply(raise);
  world_->apply(raise);
  change({uid}, Act::kReprioritise, -100);
  change({uid}, Act::kHold);
  EXPECT_EQ(row(uid).job_seq, 2) << "submitted and held";
  Statement statement(world_->engine.database(),
                      "SELECT old_priority, new_priority, to_state, job_seq FROM events "
                      "WHERE type=5 ORDER BY seq");
  std::string events;
  while (statement.step())
    events += statement.text(0) + " " + statement.text(1) + " " + statement.text(2) + " " +
              statement.text(3) + "\n";
  EXPECT_EQ(events, "0 7 3 0\n7 -100 3 0\n");
}

// A changed priority decides which job is next. Without the right to raise it, only lower values
// are accepted.
TEST_F(Turns, APriorityChangesTheOrder) {
  const std::string first = submit("first"), second = submit("second"), third = submit("third");
  ChangeTurns lower{.request_id = {},
                    .body_sha256 = {},
                    .uids = {first},
                    .act = Act::kReprioritise,
                    .reason = {},
                    .priority = -5};
  EXPECT_EQ(world_->apply(lower).jobs.at(0).priority, -5);
  lower.priority = -4;
  EXPECT_EQ(refused(lower).first, "ROLE_REQUIRED");
  EXPECT_EQ(row(first).priority, -5);
  ChangeTurns raise = lower;
  raise.may_raise = true;
  raise.uids = {third};
  raise.priority = 1;
  world_->apply(raise);
  open();
  const auto grants = acquire();
  ASSERT_EQ(grants.size(), 3U);
  EXPECT_EQ(grants[0].job.uid, third);
  EXPECT_EQ(grants[1].job.uid, second);
  EXPECT_EQ(grants[2].job.uid, first);
}

// I7: a repeated request gets the answer of the first one and changes nothing.
TEST_F(Turns, ARepeatedRequestIsAnsweredAsBefore) {
  const std::string uid = submit("job");
  const ChangeTurns hold{
      .request_id = uuid_of(99), .body_sha256 = "hold", .uids = {uid}, .reason = {}};
  EXPECT_FALSE(world_->apply(hold).replayed);
  change({uid}, Act::kReprioritise, -1);
  change({uid}, Act::kRelease);
  const TurnsChanged again = world_->apply(hold);
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.jobs.at(0).state, JobState::kHeld);
  EXPECT_EQ(again.jobs.at(0).priority, 0);
  EXPECT_EQ(row(uid).state, JobState::kQueued);
  ChangeTurns other = hold;
  other.act = Act::kRelease;
  EXPECT_EQ(refused(other).first, "REQUEST_ID_REUSED");
}

}  // namespace
}  // namespace quasi::server::test
