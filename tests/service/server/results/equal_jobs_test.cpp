// Tests that one of several equal jobs runs at a time, and that the others take its result or go on
// by themselves.

#include <map>
#include <set>

#include "tests/service/server/results/results_fixture.hpp"

namespace quasi::server::test {
namespace {

class EqualJobs : public ResultsTest {
 protected:
  std::string add(CachePolicy cache = CachePolicy::kUse, std::int64_t owner = 1,
                  const std::string& tenant = "phonons") {
    return submit(job(cache), user_scope(owner, tenant)).uids.at(0);
  }
  JobState state(const std::string& uid) { return row(uid).state; }
  void cancel(const std::string& uid) {
    world_.apply(CancelJobs{.scope = Scope::everything(),
                            .request_id = "",
                            .body_sha256 = "",
                            .uids = {uid},
                            .reason = ""});
  }
  void change(const std::string& uid, ChangeTurns::Act act) {
    world_.apply(ChangeTurns{.scope = Scope::everything(),
                             .request_id = "",
                             .body_sha256 = "",
                             .uids = {uid},
                             .act = act,
                             .reason = ""});
  }
};

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
  end(grant, "result");
  EXPECT_EQ(state(later), JobState::kSucceeded);
  EXPECT_EQ(row(later).taken_from, row(first).id);
  EXPECT_EQ(row(later).grants, 0);
  EXPECT_EQ(digest_of(later), digest("result"));
  EXPECT_EQ(text("SELECT unfinished_jobs FROM usage_totals WHERE owner_id=?", "2"), "0 ");
}

// Jobs of one submission are all queued. The first is granted, and the others wait at their turn.
TEST_F(EqualJobs, QueuedOnesWaitAtTheirTurn) {
  const std::vector<std::string> uids{add(), add(), add()};
  const Grant grant = start().value();
  EXPECT_EQ(state(uids[1]), JobState::kQueued);
  EXPECT_FALSE(start());
  EXPECT_EQ(state(uids[1]), JobState::kBlocked);
  EXPECT_EQ(state(uids[2]), JobState::kBlocked);
  end(grant, "result");
  for (const std::string& uid : uids) EXPECT_EQ(digest_of(uid), digest("result"));
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

// Random stories of equal jobs: at most one of an action runs, none waits for nothing, and every
// success has files of its action.
TEST_F(EqualJobs, RandomStoriesEndForAll) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SeededRandom random(seed);
    std::map<std::string, std::string> action_of;
    std::map<std::string, Grant> running;
    const auto below = [&](std::size_t n) { return random.next() % n; };
    const auto pick = [&](const auto& from) { return std::next(from.begin(), below(from.size())); };
    const auto finish_one = [&](bool well) {
      const auto at = pick(running);
      if (state(at->first) == JobState::kCancelling) well = false;
      end(at->second, action_of.at(at->first),
          well ? AttemptOutcome::kSucceeded : AttemptOutcome::kFailed);
      running.erase(at);
    };
    for (int step = 0; step < 150; ++step) {
      const std::uint64_t act = below(8);
      if (act < 3) {
        const std::string action =
            std::to_string(10 + seed) + std::string(62, static_cast<char>('a' + below(6)));
        const auto cache = below(4) == 0 ? CachePolicy::kRefresh : CachePolicy::kUse;
        action_of[submit(job(cache, action)).uids.at(0)] = action;
      } else if (act < 5) {
        if (const auto grant = start()) running.emplace(grant->job.uid, *grant);
      } else if (act == 5 && !action_of.empty()) {
        cancel(pick(action_of)->first);
      } else if (!running.empty()) {
        finish_one(below(3) > 0);
      }
      std::map<std::string, int> runs;
      for (const auto& [uid, action] : action_of) {
        const JobRow job = row(uid);
        const bool with_worker = job.state == JobState::kLeased || job.state == JobState::kRunning;
        if (with_worker && job.cache == CachePolicy::kUse) ++runs[action];
        if (job.state == JobState::kSucceeded) ASSERT_EQ(digest_of(uid), digest(action));
      }
      for (const auto& [action, count] : runs) ASSERT_LE(count, 1) << "step " << step;
    }
    for (int left = 0; left < 400; ++left) {
      while (const auto grant = start()) running.emplace(grant->job.uid, *grant);
      if (running.empty()) break;
      finish_one(true);
    }
    for (const auto& [uid, action] : action_of) EXPECT_TRUE(is_final(state(uid))) << uid;
  }
}

}  // namespace
}  // namespace quasi::server::test
