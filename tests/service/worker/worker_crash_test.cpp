// Kills the daemon at every point: before and after each change of a file, each call to the server
// and each answer, under three models of a power cut.

#include <gtest/gtest.h>

#include "proto/wire/digest.hpp"
#include "tests/service/support/worker_world.hpp"

namespace quasi::test {
namespace {

using JobState = WorkerWorld::JobState;

void submit_jobs(WorkerWorld& world) {
  world.submit("noop", "a deck");
  world.submit("steps");
  world.submit("invalid");
  world.submit("crash");
}

std::string result_digest(const WorkerWorld::Job& job) {
  for (const auto& artifact : job.artifacts)
    if (artifact.name() == "result.txt") return artifact.digest();
  return "none";
}

/// Checks the promises that hold after any number of crashes of the daemon.
void expect_right_ending(WorkerWorld& world) {
  for (const auto& violation : world.violations) ADD_FAILURE() << violation;
  const auto& noop = world.job("j_1");
  EXPECT_EQ(noop.state, JobState::kSucceeded);
  EXPECT_EQ(noop.successes, 1);
  EXPECT_EQ(result_digest(noop), wire::sha256_hex("the result of j_1"));
  const auto& steps = world.job("j_2");
  EXPECT_EQ(steps.state, JobState::kSucceeded);
  EXPECT_EQ(result_digest(steps), wire::sha256_hex("five steps"));
  EXPECT_EQ(world.job("j_3").state, JobState::kFailed);
  EXPECT_EQ(world.job("j_3").reason, v1::FAILURE_REASON_INVALID_INPUT);
  EXPECT_EQ(world.job("j_4").state, JobState::kFailed);
  EXPECT_TRUE(world.files.list("/state/attempts").empty());
  EXPECT_TRUE(world.files.list("/state/trash").empty());
}

/// Lets the daemon die at `point`, and again at `second` points after its restart (0: never).
/// @return false if the run ended before `point` was reached.
bool run_with_crash(std::int64_t point, std::int64_t second, Loss loss, std::uint64_t seed,
                    int* salvaged) {
  SCOPED_TRACE("crash at point " + std::to_string(point) + ", then " + std::to_string(second) +
               ", loss " + std::to_string(static_cast<int>(loss)) + ", seed " +
               std::to_string(seed));
  std::mt19937_64 random(seed);
  WorkerWorld world;
  submit_jobs(world);
  bool crashed = false;
  world.points.die_at(point);
  for (int life = 0; life < 3; ++life) {
    try {
      world.start_daemon();
      EXPECT_TRUE(world.run_until_all_over()) << "jobs or attempts are left over";
      break;
    } catch (const Crash&) {
      crashed = true;
      world.kill_daemon(loss, random);
      world.points.restart();
      if (life == 0 && second > 0) world.points.die_at(second);
    }
  }
  world.points.never();
  expect_right_ending(world);
  const auto& noop = world.job("j_1");
  EXPECT_LE(noop.executions, second > 0 ? 3 : 2);
  if (crashed && noop.executions == 1) ++*salvaged;
  if (testing::Test::HasFailure())
    for (const auto& line : world.log.lines) std::cerr << line << '\n';
  return crashed;
}

class WorkerCrash : public testing::TestWithParam<Loss> {};

TEST_P(WorkerCrash, AtEveryPointLosesNothing) {
  std::int64_t point = 1;
  int salvaged = 0;
  while (!HasFailure() && run_with_crash(point, 0, GetParam(), 7919 * point, &salvaged)) ++point;
  RecordProperty("points", static_cast<int>(point - 1));
  std::cout << point - 1 << " crash points, " << salvaged << " without a second execution\n";
  EXPECT_GE(point - 1, 120);
  EXPECT_GT(salvaged, 20);
}

TEST_P(WorkerCrash, TwiceLosesNothing) {
  std::mt19937_64 choose(20'261);
  int salvaged = 0;
  for (int i = 0; i < 200 && !HasFailure(); ++i)
    run_with_crash(1 + static_cast<std::int64_t>(choose() % 300),
                   1 + static_cast<std::int64_t>(choose() % 60), GetParam(), choose(), &salvaged);
}

std::string loss_name(const testing::TestParamInfo<Loss>& info) {
  switch (info.param) {
    case Loss::kNothing:
      return "KeepsAll";
    case Loss::kEverything:
      return "DropsUnsynced";
    case Loss::kSome:
      return "DropsSome";
  }
  return "Unknown";
}

INSTANTIATE_TEST_SUITE_P(, WorkerCrash,
                         testing::Values(Loss::kNothing, Loss::kEverything, Loss::kSome),
                         loss_name);

}  // namespace
}  // namespace quasi::test
