// Tests engines that outlive their daemon and SIGKILL, e.g. in a call of a driver.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "tests/service/support/worker_world.hpp"

namespace quasi::test {
namespace {

using JobState = WorkerWorld::JobState;

class WorkerStrays : public testing::Test {
 protected:
  /// Starts a job, kills its daemon and starts a second daemon. The engine of the job lives on,
  /// even after SIGKILL.
  /// @return the job
  auto& start_a_stray() {
    auto& job = world.submit("hang");
    world.start_daemon();
    EXPECT_TRUE(world.run_until([&] { return job.state == JobState::kRunning; }));
    world.kill_daemon(Loss::kNothing, random);
    world.strays_outlive_sigkill = true;
    world.start_daemon();
    return job;
  }

  WorkerWorld world;
  std::mt19937_64 random{1};
};

// An engine that survives SIGKILL for a while holds its device until it is gone. Only the start of
// the daemon waits for it.
TEST_F(WorkerStrays, AStrayHoldsItsDeviceUntilItIsGone) {
  auto& job = start_a_stray();
  ASSERT_TRUE(world.run_until([&] { return world.stray_looks.size() == 4; }));
  EXPECT_GT(world.stray_looks[0].second, Milliseconds(0));
  for (std::size_t i = 1; i < 4; ++i)
    EXPECT_EQ(world.stray_looks[i].second, Milliseconds(0)) << "the loop stands still";
  EXPECT_EQ(job.state, JobState::kQueued)
      << "the attempt is given back while its engine is still there";
  EXPECT_EQ(job.executions, 1) << "a second engine on a device that the first still holds";
  world.strays_outlive_sigkill = false;
  ASSERT_TRUE(world.run_until([&] { return job.executions == 2; }));
  const auto said = [&](const std::string& name) {
    return std::count_if(world.log.lines.begin(), world.log.lines.end(),
                         [&](const std::string& line) { return line.starts_with(name + " "); });
  };
  EXPECT_EQ(said("device_stuck"), 1);
  EXPECT_EQ(said("stray_ended"), 1);
  const std::size_t looks = world.stray_looks.size();
  world.advance(std::chrono::minutes(1));
  for (int i = 0; i < 20; ++i) world.step();
  EXPECT_EQ(world.stray_looks.size(), looks) << "its id may be another process's by now";
}

// The attempt of a stray is given back while its engine runs. A daemon that starts after that knows
// the engine from the directory of the attempt.
TEST_F(WorkerStrays, AStrayHoldsItsDeviceThroughTwoStarts) {
  auto& job = start_a_stray();
  ASSERT_TRUE(world.run_until([&] { return job.state == JobState::kQueued; }));
  ASSERT_TRUE(world.run_until([&] { return world.supervisor().attempts() == 0; }));
  world.kill_daemon(Loss::kNothing, random);
  const std::size_t looks = world.stray_looks.size();
  world.start_daemon();
  ASSERT_TRUE(world.run_until([&] { return world.stray_looks.size() >= looks + 4; }));
  EXPECT_EQ(job.executions, 1) << "a second engine on a device that the first still holds";
  world.strays_outlive_sigkill = false;
  EXPECT_TRUE(world.run_until([&] { return job.executions == 2; }));
}

}  // namespace
}  // namespace quasi::test
