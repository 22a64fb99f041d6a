// Tests of equal jobs over restarts of the server, and random stories of them.

#include <map>

#include "server/store/check/invariant_check.hpp"
#include "tests/service/server/results/results_fixture.hpp"

namespace quasi::server::test {
namespace {

// A server that starts with other rules, or before its workers are back, leaves nobody waiting.
TEST(EqualJobsAfterARestart, WaitForWhatTheRulesStillGive) {
  const auto blocked_after = [](ResultSharing sharing, const std::string& version) {
    const quasi::test::TemporaryDirectory root;
    FakeClock clock;
    SeededRandom random{1};
    const ServerDisk disk{.files = system_files(),
                          .root = root.path(),
                          .database = (root.path() / "quasi.db").string()};
    QueueOptions options;
    options.results.version = "test";
    NewJob equal = simple_job("equal");
    equal.row.action = kAction;
    equal.row.cache = CachePolicy::kUse;
    const RegisterWorker worker = simple_worker("w_1", 1, 8);
    {
      QueueWorld before(disk, clock, random, options);
      before.apply(worker);
      for (std::int64_t owner = 1; owner <= 2; ++owner) {
        before.apply(SubmitJobs{.scope = user_scope(owner, "phonons"),
                                .request_id = uuid_of(static_cast<std::uint64_t>(owner)),
                                .body_sha256 = "b",
                                .jobs = {equal}});
        if (owner == 1) before.apply(simple_acquire(worker, 10, 1));
      }
    }
    options.results = {.sharing = sharing, .version = version};
    QueueWorld after(disk, clock, random, options);
    after.run([](WriteContext& write) { write.queue.tick(write.now); });
    Statement blocked(after.engine.database(), "SELECT count(*) FROM jobs WHERE state=1");
    blocked.step();
    return blocked.integer(0);
  };
  EXPECT_EQ(blocked_after(ResultSharing::kTenant, "test"), 1) << "nothing has changed";
  EXPECT_EQ(blocked_after(ResultSharing::kOwner, "test"), 0);
  EXPECT_EQ(blocked_after(ResultSharing::kNone, "test"), 0);
  EXPECT_EQ(blocked_after(ResultSharing::kTenant, "next"), 0) << "the server is upgraded";
}

/// Blocked jobs without an equal one that runs or is queued.
constexpr char kWaitsForNothing[] =
    "SELECT uid FROM jobs j WHERE state=? AND NOT EXISTS (SELECT 1 FROM jobs o WHERE "
    "o.action=j.action AND o.tenant=j.tenant AND o.cache<>3 AND o.state IN (3, 4, 5))";

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
        const std::string& uid = pick(action_of)->first;
        if (!is_final(state(uid))) disturb(uid, below(12));
      } else if (!running.empty()) {
        finish_one(below(3) > 0);
      }
      std::map<std::string, int> runs;
      for (const auto& [uid, action] : action_of) {
        const JobRow job = row(uid);
        const bool with_worker = job.state == JobState::kLeased || job.state == JobState::kRunning;
        if (with_worker && job.cache == CachePolicy::kUse) ++runs[action];
        if (job.state == JobState::kSucceeded) {
          ASSERT_EQ(digest_of(uid), digest(action));
        }
      }
      for (const auto& [action, count] : runs) ASSERT_LE(count, 1) << "step " << step;
      ASSERT_EQ(text(kWaitsForNothing, "1"), "") << "step " << step;
    }
    for (const auto& [uid, action] : action_of)
      if (state(uid) == JobState::kHeld) change(uid, ChangeTurns::Act::kRelease);
    for (int left = 0; left < 400; ++left) {
      while (const auto grant = start()) running.emplace(grant->job.uid, *grant);
      if (running.empty()) break;
      finish_one(true);
    }
    for (const auto& [uid, action] : action_of) EXPECT_TRUE(is_final(state(uid))) << uid;
    EXPECT_EQ(invariant_faults(world_.engine.database(), 4), std::vector<std::string>());
  }
}

}  // namespace
}  // namespace quasi::server::test
