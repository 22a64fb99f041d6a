// Tests the sets of jobs of sweeps: how many of them run at a time, when the others stop, and that
// a set is submitted, counted and cancelled as one thing.

#include "tests/service/server/dependencies/dependencies_fixture.hpp"

namespace quasi::server::test {
namespace {

using Act = ChangeTurns::Act;

/// Limits of a set; 0 is none.
struct Limits {
  std::int64_t max_concurrent = 0;
  std::int64_t stop_after_failures = 0;
};

class JobSets : public DependenciesTest {
 protected:
  SubmitJobs sweep_of(std::vector<NewJob> jobs, Limits limits) {
    JobSetRow set;
    set.name = "sweep";
    set.max_concurrent = limits.max_concurrent;
    set.stop_after_failures = limits.stop_after_failures;
    return {.scope = user_scope(1, "phonons"),
            .request_id = uuid_of(++calls_),
            .body_sha256 = "b",
            .jobs = std::move(jobs),
            .set = set};
  }
  static std::vector<NewJob> plain(std::size_t n) {
    std::vector<NewJob> jobs;
    for (std::size_t i = 0; i < n; ++i) jobs.push_back(simple_job("j" + std::to_string(i)));
    return jobs;
  }
  Submitted sweep(std::vector<NewJob> jobs, Limits limits = {}) {
    return world_.apply(sweep_of(std::move(jobs), limits));
  }
  /// Numbers of jobs in each of the states of this list.
  std::vector<int> counts(const std::vector<std::string>& uids,
                          const std::vector<JobState>& states) {
    std::vector<int> found(states.size());
    for (const std::string& uid : uids)
      for (std::size_t i = 0; i < states.size(); ++i) found[i] += state(uid) == states[i] ? 1 : 0;
    return found;
  }
  Cancelled cancel_set(const std::string& set, const Scope& scope = user_scope(1, "phonons")) {
    return world_.apply(CancelJobs{.scope = scope,
                                   .request_id = uuid_of(++calls_),
                                   .body_sha256 = "",
                                   .uids = {},
                                   .reason = "enough",
                                   .set_uid = set});
  }
  void fail(const Grant& grant) { end(grant, "", AttemptOutcome::kFailed); }
};

TEST_F(JobSets, SoManyRunAtATime) {
  const Submitted submitted = sweep(plain(20), {.max_concurrent = 3});
  EXPECT_TRUE(submitted.set_uid.starts_with("s_"));
  std::vector<Grant> running;
  std::vector<std::string> order;
  for (int left = 20; left > 0; --left) {
    while (const auto grant = start()) {
      running.push_back(*grant);
      order.push_back(grant->job.uid);
    }
    ASSERT_EQ(running.size(), static_cast<std::size_t>(std::min(3, left)));
    // A success, a failure and a cancel each let the next one go on.
    if (left % 3 == 0)
      fail(running.front());
    else
      end(running.front(), "result");
    running.erase(running.begin());
  }
  EXPECT_EQ(order, submitted.uids) << "not in the order of the sweep";
}

TEST_F(JobSets, AWaitingJobSaysWhy) {
  const Submitted submitted = sweep(plain(3), {.max_concurrent = 2});
  const Explanation explanation = why(submitted.uids[2]);
  EXPECT_EQ(explanation.reason, WaitReason::kSetLimit);
  EXPECT_EQ(explanation.message, "its set runs at most 2 jobs at a time");
  EXPECT_EQ(text("SELECT e.message FROM events e JOIN jobs j ON j.id=e.job_id WHERE j.uid=?",
                 submitted.uids[2]),
            "as many jobs of its set run as may at a time ");
}

TEST_F(JobSets, AHigherPriorityGoesFirst) {
  const Submitted submitted = sweep(plain(4), {.max_concurrent = 1});
  world_.apply(ChangeTurns{.scope = Scope::everything(),
                           .request_id = "",
                           .body_sha256 = "",
                           .uids = {submitted.uids[3]},
                           .act = Act::kReprioritise,
                           .reason = "",
                           .priority = 5,
                           .may_raise = true});
  finish("result");
  EXPECT_EQ(start().value().job.uid, submitted.uids[3]);
}

// The delay of a job that its worker gave back is a length of time, also if the wall clock steps
// back while the job waits for its set.
TEST_F(JobSets, AWallClockThatStepsBackKeepsNoJobWaiting) {
  const auto uids = sweep(plain(2), {.max_concurrent = 1}).uids;
  world_.apply(ReleaseLease{
      .key = key_of(start().value()), .reason = ReleaseReason::kStageTimeout, .message = "slow"});
  change(uids[0], Act::kHold);
  EXPECT_EQ(change(uids[0], Act::kRelease), JobState::kBlocked) << "the other one has the place";
  const Grant other = start().value();
  clock_.time.wall_ms -= 86'400'000;
  clock_.time.monotonic_ms += 40'000;  // The delay of 30 s ends, the lease of 60 s does not.
  world_.run([](WriteContext& write) { write.queue.tick(write.now); });
  end(other, "result");
  const auto next = start();
  ASSERT_TRUE(next) << "it waits until the wall clock reaches the end of its delay again";
  EXPECT_EQ(next->job.uid, uids[0]);
}

// The worker of a job is silent, another job of the set takes its place, and the worker comes back.
TEST_F(JobSets, AnExpiredAttemptComesBackToAFreePlaceAlone) {
  const auto uids = sweep(plain(2), {.max_concurrent = 1}).uids;
  const Grant lost = start().value();
  const Heartbeat heartbeat{
      .worker_id = lost.attempt.worker_id,
      .incarnation = lost.attempt.incarnation,
      .attempts = {{.attempt_uid = lost.attempt.uid, .fence = lost.attempt.fence, .progress = {}}},
      .devices = {}};
  clock_.advance(QueueOptions().lease_ttl_ms + 1);
  world_.run([](WriteContext& write) { write.queue.tick(write.now); });
  change(uids[0], Act::kHold);
  ASSERT_EQ(change(uids[0], Act::kRelease), JobState::kBlocked) << "the other one has the place";
  EXPECT_EQ(world_.apply(heartbeat).directives.at(0), Directive::kFenced);
  EXPECT_EQ(state(uids[0]), JobState::kBlocked);
  change(uids[0], Act::kHold);
  change(uids[1], Act::kHold);
  EXPECT_EQ(world_.apply(heartbeat).directives.at(0), Directive::kContinue)
      << "the place is free, and the job is only held";
  EXPECT_EQ(state(uids[0]), JobState::kRunning);
}

TEST_F(JobSets, AHeldJobLeavesItsPlace) {
  const auto uids = sweep(plain(3), {.max_concurrent = 1}).uids;
  EXPECT_EQ(change(uids[0], Act::kHold), JobState::kHeld);
  EXPECT_EQ(state(uids[1]), JobState::kQueued);
  EXPECT_EQ(change(uids[0], Act::kRelease), JobState::kBlocked) << "the place is taken";
  finish("result");
  EXPECT_EQ(start().value().job.uid, uids[0]) << "the older one is the next";
}

TEST_F(JobSets, TheOthersStopAfterSoManyFailures) {
  const auto uids = sweep(plain(10), {.max_concurrent = 3, .stop_after_failures = 2}).uids;
  const std::string dependent = add(after({uid(uids[9])}));
  const Grant first = start().value(), second = start().value(), third = start().value();
  change(uids[8], Act::kHold);
  fail(first);
  EXPECT_EQ(counts(uids, {JobState::kCancelled}), std::vector<int>{0});
  fail(second);
  EXPECT_EQ(counts(uids, {JobState::kFailed, JobState::kRunning, JobState::kCancelled}),
            (std::vector<int>{2, 1, 7}));
  EXPECT_EQ(text("SELECT e.message FROM events e JOIN jobs j ON j.id=e.job_id WHERE j.uid=? AND "
                 "e.to_state=9",
                 uids[9]),
            "its set stopped after 2 failures ");
  EXPECT_EQ(row(dependent).failure.reason, FailureReason::kDependency);
  end(third, "result");
  EXPECT_EQ(state(uids[2]), JobState::kSucceeded) << "a running job goes on";
  EXPECT_NE(text("SELECT stopped_ms FROM job_sets WHERE name=?", "sweep"), "0 ");
}

// A job that fails because of another one outside the set is no failure of the sweep.
TEST_F(JobSets, FailuresByDependencyDoNotCount) {
  const std::string first = add(simple_job("first"));
  std::vector<NewJob> jobs = plain(2);
  jobs.push_back(after({uid(first)}));
  const auto uids = sweep(jobs, {.stop_after_failures = 1}).uids;
  cancel({first});
  EXPECT_EQ(counts(uids, {JobState::kFailed, JobState::kQueued}), (std::vector<int>{1, 2}));
}

TEST_F(JobSets, OneCallCancelsASet) {
  const Submitted submitted = sweep(plain(8), {.max_concurrent = 3});
  const std::string other = add(simple_job("other"));
  finish("result");
  start();
  const Cancelled cancelled = cancel_set(submitted.set_uid);
  EXPECT_EQ(cancelled.states.size(), 7U);
  EXPECT_EQ(
      counts(submitted.uids, {JobState::kSucceeded, JobState::kCancelling, JobState::kCancelled}),
      (std::vector<int>{1, 1, 6}));
  EXPECT_EQ(state(other), JobState::kQueued);
  // No job of the set became ready in between.
  EXPECT_EQ(text("SELECT count(*) FROM events WHERE to_state=3 AND ?<>''", "x"), "5 ")
      << "3 at the submission, 1 after the success, and the other job";
  for (std::size_t i = 0; i < cancelled.uids.size(); ++i)
    EXPECT_EQ(state(cancelled.uids[i]), cancelled.states[i]);
}

TEST_F(JobSets, AForeignSetIsAbsent) {
  const Submitted submitted = sweep(plain(2));
  for (const std::string& set : {submitted.set_uid, "s_" + std::string(26, '0')}) {
    try {
      cancel_set(set, user_scope(2, "devices"));
      ADD_FAILURE() << "cancelled";
    } catch (const Refused& refused) {
      EXPECT_EQ(refused.reason, "JOB_SET");
      EXPECT_EQ(refused.what(), "there is no job set " + set);
    }
  }
  EXPECT_EQ(counts(submitted.uids, {JobState::kQueued}), std::vector<int>{2});
}

// The jobs of a sweep that have a result already end at the submission and take no place.
TEST_F(JobSets, KnownResultsTakeNoPlace) {
  std::vector<NewJob> jobs;
  for (char c = 'a'; c < 'g'; ++c) jobs.push_back(job(CachePolicy::kUse, std::string(64, c)));
  submit(jobs[0]);
  finish("result a");
  submit(jobs[4]);
  finish("result e");
  const auto uids = sweep(jobs, {.max_concurrent = 1}).uids;
  EXPECT_EQ(counts(uids, {JobState::kSucceeded, JobState::kQueued, JobState::kBlocked}),
            (std::vector<int>{2, 1, 3}));
  EXPECT_EQ(start().value().job.uid, uids[1]);
}

// A result that is known when a job's place comes is taken, and the next one follows.
TEST_F(JobSets, ResultsAreTakenAtTheirPlace) {
  std::vector<NewJob> jobs;
  for (char c = 'a'; c < 'e'; ++c) jobs.push_back(job(CachePolicy::kUse, std::string(64, c)));
  const auto uids = sweep(jobs, {.max_concurrent = 1}).uids;
  const Grant first = start().value();
  for (const std::size_t i : {1, 2}) {
    submit(jobs[i]);
    finish("result");
  }
  EXPECT_EQ(counts(uids, {JobState::kRunning, JobState::kBlocked}), (std::vector<int>{1, 3}));
  end(first, "result");
  EXPECT_EQ(counts(uids, {JobState::kSucceeded, JobState::kQueued}), (std::vector<int>{3, 1}));
}

// Each job of a sweep waits for the same job, and then for its place.
TEST_F(JobSets, DependenciesComeBeforePlaces) {
  const std::string first = add(simple_job("first"));
  std::vector<NewJob> jobs;
  for (int i = 0; i < 5; ++i) jobs.push_back(after({uid(first)}));
  const auto uids = sweep(jobs, {.max_concurrent = 2}).uids;
  EXPECT_EQ(counts(uids, {JobState::kBlocked}), std::vector<int>{5});
  finish("result");
  EXPECT_EQ(counts(uids, {JobState::kQueued, JobState::kBlocked}), (std::vector<int>{2, 3}));
  EXPECT_EQ(why(uids[4]).reason, WaitReason::kSetLimit);
  for (int i = 0; i < 5; ++i) finish("result");
  EXPECT_EQ(counts(uids, {JobState::kSucceeded}), std::vector<int>{5});
}

// A sweep with a limit leaves the other slots to other users, and its owner's other jobs.
TEST_F(JobSets, ALimitLeavesRoomForOthers) {
  sweep(plain(100), {.max_concurrent = 2});
  const std::string own = add(simple_job("own"));
  const std::string other = submit_all({simple_job("other")}, user_scope(2, "devices")).at(0);
  std::map<std::string, int> started;
  while (const auto grant = start()) ++started[grant->job.uid];
  EXPECT_EQ(started.size(), 4U) << "two of the sweep, and both others";
  EXPECT_EQ(started[own] + started[other], 2);
}

// A quota counts the jobs of a sweep at once: all of them go in, or none.
TEST_F(JobSets, AQuotaCountsASweepAtOnce) {
  world_.run([](WriteContext& write) {
    write.store.save_allowance(Account::of_principal(1), {.unfinished_jobs = 10});
  });
  EXPECT_THROW(sweep(plain(11), {.max_concurrent = 1}), Refused);
  EXPECT_EQ(text("SELECT count(*) FROM jobs WHERE ?<>''", "x"), "0 ");
  EXPECT_EQ(text("SELECT count(*) FROM job_sets WHERE ?<>''", "x"), "0 ");
  EXPECT_EQ(sweep(plain(10), {.max_concurrent = 1}).uids.size(), 10U);
  EXPECT_THROW(sweep(plain(1)), Refused) << "waiting jobs of a sweep count";
}

TEST_F(JobSets, ARepeatedSubmissionGetsTheSameSet) {
  const SubmitJobs command = sweep_of(plain(3), {.max_concurrent = 1});
  const Submitted first = world_.apply(command), again = world_.apply(command);
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.set_uid, first.set_uid);
  EXPECT_EQ(again.uids, first.uids);
  EXPECT_EQ(text("SELECT count(*) FROM jobs WHERE ?<>''", "x"), "3 ");
  const CancelJobs cancel{.scope = user_scope(1, "phonons"),
                          .request_id = uuid_of(++calls_),
                          .body_sha256 = "",
                          .uids = {},
                          .reason = "",
                          .set_uid = first.set_uid};
  const Cancelled once = world_.apply(cancel), twice = world_.apply(cancel);
  EXPECT_TRUE(twice.replayed);
  EXPECT_EQ(twice.uids, once.uids);
  EXPECT_EQ(twice.states, once.states);
}

// The random life of a set: never more jobs than its limit run, and all of them end.
TEST_F(JobSets, TheLimitHoldsInARandomLife) {
  SeededRandom chance(7);
  const auto below = [&](std::size_t n) { return chance.next() % n; };
  const auto uids = sweep(plain(40), {.max_concurrent = 4}).uids;
  std::map<std::string, Grant> running;
  for (int step = 0; step < 600; ++step) {
    const std::string& any = uids[below(uids.size())];
    const JobState now = state(any);
    switch (below(6)) {
      case 0:
      case 1:
        if (const auto grant = start()) running.emplace(grant->job.uid, *grant);
        break;
      case 2:
        if (!running.contains(any)) break;
        below(3) == 0 ? fail(running.at(any)) : end(running.at(any), "result");
        running.erase(any);
        break;
      case 3:
        if (now <= JobState::kQueued && now != JobState::kHeld) change(any, Act::kHold);
        break;
      case 4:
        if (now == JobState::kHeld) change(any, Act::kRelease);
        break;
      case 5:
        if (now <= JobState::kQueued && below(8) == 0) cancel({any});
        break;
    }
    const auto n = counts(uids, {JobState::kQueued, JobState::kRunning, JobState::kBlocked});
    ASSERT_LE(n[0] + n[1], 4) << "step " << step;
    if (n[2] == 0) continue;
    ASSERT_EQ(n[0] + n[1], 4) << "a place is free, and a job waits; step " << step;
  }
}

}  // namespace
}  // namespace quasi::server::test
