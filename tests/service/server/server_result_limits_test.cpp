// Tests the choice of the ended jobs that are deleted when their files hold more bytes than a user,
// or all users, may keep.

#include <gtest/gtest.h>

#include <algorithm>

#include "server/service/retention/result_limits.hpp"
#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

class ResultLimitsTest : public testing::Test {
 protected:
  ResultLimitsTest() { world_.apply(worker_); }

  /// Runs a job of an owner to its success with one result. The next job ends a second later.
  std::string succeed(const std::string& result, std::int64_t owner_id = 1) {
    const std::string uid = submit(owner_id);
    const Grant grant = world_.apply(simple_acquire(worker_, ++calls_, 1)).grants.at(0);
    world_.apply(StartAttempt{key_of(grant)});
    world_.apply(
        CompleteAttempt{.key = key_of(grant),
                        .outcome = AttemptOutcome::kSucceeded,
                        .artifacts = {{.name = "result.h5",
                                       .digest = world_.put_blob(result),
                                       .size_bytes = static_cast<std::int64_t>(result.size()),
                                       .media_type = ""}},
                        .summary_json = "{}",
                        .failure = {},
                        .usage = {},
                        .report_digest = uid});
    clock_.advance(1'000);
    return uid;
  }
  std::string submit(std::int64_t owner_id = 1) {
    return world_
        .apply(SubmitJobs{.scope = {.principal_id = owner_id},
                          .request_id = uuid_of(++calls_),
                          .body_sha256 = "b",
                          .jobs = {simple_job("job")}})
        .uids.at(0);
  }
  /// Returns the jobs that have to go, the oldest first.
  std::vector<std::string> excess(const RetentionOptions& options) {
    std::vector<std::string> uids;
    for (const ExcessResult& result :
         excess_results(world_.engine.database(), result_limits(options, clock_.now().wall_ms)))
      uids.push_back(result.uid);
    return uids;
  }
  static std::string bytes(std::size_t size, char content) { return std::string(size, content); }
  using Uids = std::vector<std::string>;

  quasi::test::TemporaryDirectory root_;
  FakeClock clock_;
  SeededRandom random_{1};
  QueueWorld world_{ServerDisk{.files = system_files(), .root = root_.path()}, clock_, random_,
                    QueueOptions{}};
  RegisterWorker worker_ = simple_worker("w_1", 1, 1'000);
  std::uint64_t calls_ = 100;
};

TEST_F(ResultLimitsTest, TheOldestGoUntilTheOthersFit) {
  const std::string first = succeed(bytes(400, 'a')), second = succeed(bytes(300, 'b'));
  const std::string third = succeed(bytes(200, 'c'));
  const auto beyond = [&](std::int64_t limit) {
    return excess({.total_result_bytes = limit, .result_grace_ms = 0});
  };
  EXPECT_EQ(beyond(900), Uids{});
  EXPECT_EQ(beyond(899), Uids{first});
  EXPECT_EQ(beyond(500), Uids{first});
  EXPECT_EQ(beyond(499), (Uids{first, second}));
  EXPECT_EQ(beyond(1), (Uids{first, second, third}));
  EXPECT_EQ(beyond(0), Uids{}) << "0 means no limit";
}

// An older job that would fit beside newer ones goes, too: users can tell which results stay.
TEST_F(ResultLimitsTest, NothingOlderStaysWhereSomethingNewerGoes) {
  const std::string small = succeed(bytes(10, 'a')), large = succeed(bytes(500, 'b'));
  succeed(bytes(100, 'c'));
  EXPECT_EQ(excess({.total_result_bytes = 400, .result_grace_ms = 0}), (Uids{small, large}));
}

// Deleting a job frees no file that a newer job needs, so such a job stays.
TEST_F(ResultLimitsTest, AFileOfSeveralJobsCountsOnce) {
  const std::string own = succeed(bytes(100, 'a'));
  succeed(bytes(300, 's'));
  succeed(bytes(300, 's'));
  EXPECT_EQ(excess({.total_result_bytes = 400, .result_grace_ms = 0}), Uids{});
  EXPECT_EQ(excess({.total_result_bytes = 300, .result_grace_ms = 0}), Uids{own});
}

TEST_F(ResultLimitsTest, EveryUserHasALimitOfTheirOwn) {
  const std::string hers = succeed(bytes(300, 'a'), 1), his = succeed(bytes(300, 'b'), 2);
  succeed(bytes(200, 'c'), 1);
  EXPECT_EQ(excess({.user_result_bytes = 400, .result_grace_ms = 0}), Uids{hers});
  EXPECT_EQ(excess({.user_result_bytes = 400, .total_result_bytes = 400, .result_grace_ms = 0}),
            (Uids{hers, his}));
}

TEST_F(ResultLimitsTest, LiveAndNewJobsAndJobsWithoutFilesStay) {
  const std::string cancelled = submit();
  world_.apply(
      CancelJobs{.request_id = {}, .body_sha256 = {}, .uids = {cancelled}, .reason = "enough"});
  const std::string old = succeed(bytes(500, 'a'));
  clock_.advance(60'000);
  const std::string new_one = succeed(bytes(500, 'b'));
  submit();
  EXPECT_EQ(excess({.total_result_bytes = 1, .result_grace_ms = 30'000}), Uids{old});
  EXPECT_EQ(excess({.total_result_bytes = 1, .result_grace_ms = 0}), (Uids{old, new_one}));
}

// The answer is short on a table of any length, and calls that follow each other delete the rest.
TEST_F(ResultLimitsTest, ALongTableIsDeletedInPartsFromItsOldestEnd) {
  constexpr std::size_t kJobs = 1'203;
  Uids jobs;
  for (std::size_t i = 0; i < kJobs; ++i) jobs.push_back(succeed("result " + std::to_string(i)));
  ResultLimits limits{.total_bytes = 1, .ended_before_ms = clock_.now().wall_ms, .most = 500};
  Uids deleted;
  for (;;) {
    const auto part = excess_results(world_.engine.database(), limits);
    EXPECT_LE(part.size(), limits.most);
    if (part.empty()) break;
    for (const ExcessResult& result : part) {
      world_.run([&](WriteContext& write) { delete_excess_result(write, result); });
      deleted.push_back(result.uid);
    }
    // A job that was deleted by hand in the meantime is no error.
    EXPECT_NO_THROW(world_.run([&](WriteContext& write) { delete_excess_result(write, part[0]); }));
  }
  EXPECT_EQ(deleted, jobs);
}

}  // namespace
}  // namespace quasi::server::test
