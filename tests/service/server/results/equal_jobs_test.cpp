// Tests that one of several equal jobs runs at a time, and that the others take its result or go on
// by themselves.

#include "tests/service/server/results/results_fixture.hpp"

namespace quasi::server::test {
namespace {

TEST_F(EqualJobs, ALaterJobTakesTheResultOfTheRunningOne) {
  const std::string first = add();
  const Grant grant = start().value();
  const std::string later = add(CachePolicy::kUse, 2);
  EXPECT_EQ(state(later), JobState::kBlocked);
  EXPECT_FALSE(start()) << "an equal job was granted beside the running one";
  Explanation why;
  world_.run([&](WriteContext& write) {
    why = write.queue.explain(Scope::everything(), later, write.now);
  });
  EXPECT_EQ(why.reason, WaitReason::kEqualJob);
  EXPECT_EQ(why.blocking, std::vector<std::string>{first});
  world_.run([&](WriteContext& write) {
    why = write.queue.explain(user_scope(2, "phonons"), later, write.now);
  });
  EXPECT_EQ(why.blocking_jobs, 1);
  EXPECT_TRUE(why.blocking.empty()) << "the job of another owner is named";
  end(grant, "result");
  EXPECT_EQ(state(later), JobState::kSucceeded);
  EXPECT_EQ(row(later).taken_from, row(first).id);
  EXPECT_EQ(row(later).grants, 0);
  EXPECT_EQ(digest_of(later), digest("result"));
  EXPECT_EQ(text("SELECT unfinished_jobs FROM usage_totals WHERE owner_id=?", "2"), "0 ");
}

// Queued jobs that may run on other devices, or at another time, wait at their turn.
TEST_F(EqualJobs, QueuedOnesWaitAtTheirTurn) {
  const std::vector<std::string> uids{add(), add_limited(60'000), add_limited(90'000)};
  const Grant grant = start().value();
  EXPECT_EQ(state(uids[1]), JobState::kQueued);
  EXPECT_FALSE(start());
  EXPECT_EQ(state(uids[1]), JobState::kBlocked);
  EXPECT_EQ(state(uids[2]), JobState::kBlocked);
  end(grant, "result");
  for (const std::string& uid : uids) EXPECT_EQ(digest_of(uid), digest("result"));
}

// A job behind an equal one in the same queue waits at once, and goes on when that one leaves.
TEST_F(EqualJobs, OneOfAQueueIsQueued) {
  const std::vector<std::string> uids{add(), add(), add(), add(), add()};
  EXPECT_EQ(count("3"), 1U);
  cancel(uids[0]);
  EXPECT_EQ(state(uids[1]), JobState::kQueued);
  change(uids[1], ChangeTurns::Act::kHold);
  EXPECT_EQ(state(uids[2]), JobState::kQueued);
  EXPECT_EQ(change(uids[2], ChangeTurns::Act::kReprioritise, -5).jobs[0].state, JobState::kQueued);
  EXPECT_EQ(state(uids[3]), JobState::kQueued);
  EXPECT_EQ(change(uids[4], ChangeTurns::Act::kReprioritise, 5).jobs[0].state, JobState::kQueued);
  EXPECT_EQ(start().value().job.uid, uids[4]);
  EXPECT_FALSE(start());
  EXPECT_EQ(count("1"), 2U);
  change(uids[1], ChangeTurns::Act::kRelease);
  EXPECT_FALSE(start());
  EXPECT_EQ(count("1"), 3U);
}

// A failure costs the changes of one waiting job and not of all.
TEST_F(EqualJobs, AFailureMovesOneOfManyTwins) {
  for (int i = 0; i < 50; ++i) add();
  for (int failed = 1; failed <= 20; ++failed) {
    end(start().value(), "", AttemptOutcome::kFailed);
    EXPECT_EQ(count("3"), 1U);
    EXPECT_EQ(count("1"), static_cast<std::size_t>(49 - failed));
  }
  EXPECT_EQ(text("SELECT count(*) FROM events WHERE to_state=?", "1"), "49 ");
}

TEST_F(EqualJobs, OneTransactionMovesABoundedNumber) {
  const std::string first = add();
  const Grant grant = start().value();
  for (int i = 0; i < 600; ++i) add();
  EXPECT_EQ(count("1"), 600U);
  end(grant, "result");
  EXPECT_EQ(count("7"), 257U);
  tick();
  EXPECT_EQ(count("7"), 513U);
  tick();
  tick();
  EXPECT_EQ(count("7"), 601U);
}

TEST_F(EqualJobs, OneRequestOfAWorkerPassesABoundedNumber) {
  const std::string first = add();
  const Grant grant = start().value();
  std::vector<std::string> held;
  for (int i = 0; i < 100; ++i) change(held.emplace_back(add()), ChangeTurns::Act::kHold);
  end(grant, "result");
  for (const std::string& uid : held) change(uid, ChangeTurns::Act::kRelease);
  add(CachePolicy::kRefresh);
  bool is_asked_again = false;
  world_.run([&](WriteContext& write) {
    write.queue.take_ready_flag();
    EXPECT_TRUE(write.queue.apply(simple_acquire(worker_, ++calls_, 1), write.now).grants.empty());
    is_asked_again = write.queue.take_ready_flag();
  });
  EXPECT_TRUE(is_asked_again) << "the worker would sleep beside a job that it could run";
  EXPECT_EQ(count("7"), 65U);
  EXPECT_TRUE(start());
  EXPECT_EQ(count("7"), 101U);
}

TEST_F(EqualJobs, AResultIsTakenAtTheTurnToo) {
  const std::string first = add();
  const Grant grant = start().value();
  const std::string held = add();
  change(held, ChangeTurns::Act::kHold);
  end(grant, "result");
  EXPECT_EQ(state(held), JobState::kHeld);
  change(held, ChangeTurns::Act::kRelease);
  EXPECT_FALSE(start());
  EXPECT_EQ(digest_of(held), digest("result"));
  EXPECT_EQ(row(held).taken_from, row(first).id);
}

TEST_F(EqualJobs, AFailureLetsTheOthersRun) {
  add();
  const Grant grant = start().value();
  const std::string second = add(), third = add();
  end(grant, "", AttemptOutcome::kFailed);
  EXPECT_EQ(state(second), JobState::kQueued);
  const Grant next = start().value();
  EXPECT_EQ(next.job.uid, second);
  EXPECT_FALSE(start());
  end(next, "result");
  EXPECT_EQ(digest_of(third), digest("result"));
}

TEST_F(EqualJobs, ACancelLetsTheOthersRunAtOnce) {
  const std::string first = add();
  const Grant grant = start().value();
  const std::string later = add();
  cancel(first);
  EXPECT_EQ(state(first), JobState::kCancelling);
  EXPECT_EQ(start().value().job.uid, later);
}

TEST_F(EqualJobs, ACancelOfAWaitingOneStopsNothing) {
  const std::string first = add();
  const Grant grant = start().value();
  const std::string later = add();
  cancel(later);
  end(grant, "result");
  EXPECT_EQ(state(first), JobState::kSucceeded);
  EXPECT_EQ(state(later), JobState::kCancelled);
  EXPECT_EQ(digest_of(later), "");
}

TEST_F(EqualJobs, ALostWorkerLetsTheOthersRun) {
  add();
  start();
  const std::string later = add();
  EXPECT_EQ(state(later), JobState::kBlocked);
  clock_.advance(QueueOptions().lease_ttl_ms + 1);
  world_.run([](WriteContext& write) { write.queue.tick(write.now); });
  EXPECT_EQ(state(later), JobState::kQueued);
}

// The worker of the first job is silent, an equal job runs elsewhere, and the worker comes back.
TEST_F(EqualJobs, ABlockedJobIsReinstated) {
  const std::string first = add();
  const Grant lost = start().value();
  const std::string second = add();
  clock_.advance(QueueOptions().lease_ttl_ms + 1);
  tick();
  worker_ = simple_worker("w_2", 2, 1'000);
  world_.apply(worker_);
  const Grant grant = start().value();
  EXPECT_EQ(grant.job.uid, second);
  clock_.advance(QueueOptions().requeue_delay_ms);
  world_.apply(Heartbeat{.worker_id = "w_2",
                         .incarnation = worker_.worker.incarnation,
                         .attempts = {{.attempt_uid = grant.attempt.uid,
                                       .fence = grant.attempt.fence,
                                       .progress = {}}},
                         .devices = {}});
  tick();
  EXPECT_FALSE(start());
  EXPECT_EQ(state(first), JobState::kBlocked);
  world_.apply(simple_worker("w_1", 1, 1'000));
  const auto answer = world_.apply(Heartbeat{
      .worker_id = "w_1",
      .incarnation = lost.attempt.incarnation,
      .attempts = {{.attempt_uid = lost.attempt.uid, .fence = lost.attempt.fence, .progress = {}}},
      .devices = {}});
  EXPECT_EQ(answer.directives.at(0), Directive::kContinue);
  EXPECT_EQ(state(first), JobState::kRunning);
  end(lost, "result");
  end(grant, "result");
  EXPECT_EQ(state(first), JobState::kSucceeded);
  EXPECT_EQ(state(second), JobState::kSucceeded);
}

// A worker that was cut off while the result was taken from another one is fenced.
TEST_F(EqualJobs, ALateWorkerOfAJobThatTookAResultIsFenced) {
  const std::string first = add();
  const Grant lost = start().value();
  const std::string second = add();
  clock_.advance(QueueOptions().lease_ttl_ms + 1);
  tick();
  worker_ = simple_worker("w_2", 2, 1'000);
  world_.apply(worker_);
  end(start().value(), "result");
  EXPECT_EQ(state(first), JobState::kSucceeded) << "a job in its back-off takes a result, too";
  EXPECT_THROW(end(lost, "another"), Refused);
  EXPECT_EQ(digest_of(first), digest("result"));
}

TEST_F(EqualJobs, AGrantToAWorkerOfAnotherVersionLetsTheOthersRun) {
  const std::vector<std::string> uids{add(), add(), add()};
  worker_.worker.version = "older";
  world_.apply(worker_);
  const Grant older = start().value();
  EXPECT_EQ(state(uids[1]), JobState::kQueued);
  worker_ = simple_worker("w_2", 2, 1'000);
  world_.apply(worker_);
  const Grant newer = start().value();
  EXPECT_EQ(newer.job.uid, uids[1]);
  end(older, "older");
  EXPECT_EQ(state(uids[2]), JobState::kBlocked);
  end(newer, "newer");
  EXPECT_EQ(digest_of(uids[2]), digest("newer"));
}

TEST_F(EqualJobs, OthersRunBeside) {
  add();
  start();
  EXPECT_EQ(state(add(CachePolicy::kRefresh)), JobState::kQueued) << "REFRESH waits";
  EXPECT_EQ(state(add(CachePolicy::kOff)), JobState::kQueued) << "OFF waits";
  EXPECT_EQ(state(add(CachePolicy::kUse, 3, "devices")), JobState::kQueued) << "another tenant";
  NewJob different = job(CachePolicy::kUse, std::string(64, 'b'));
  EXPECT_EQ(state(submit(different).uids.at(0)), JobState::kQueued) << "another action";
  different = job();
  different.row.not_before_ms = clock_.time.wall_ms + 1'000;
  EXPECT_EQ(state(submit(different).uids.at(0)), JobState::kQueued) << "not ready yet";
}

TEST_F(EqualJobs, NobodyWaitsForAResultThatIsNotKept) {
  add(CachePolicy::kOff);
  start();
  EXPECT_EQ(state(add()), JobState::kQueued) << "OFF offers nothing";
  worker_.worker.version = "older";
  world_.apply(worker_);
  start();
  EXPECT_EQ(state(add()), JobState::kQueued) << "a worker of another version offers nothing";
}

}  // namespace
}  // namespace quasi::server::test
