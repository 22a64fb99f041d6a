// Tests that a worker tests its GPU: faults quarantine it, and a passed self-test heals it.

#include <gtest/gtest.h>

#include <chrono>

#include "tests/service/support/worker_world.hpp"

namespace quasi::test {
namespace {

using JobState = WorkerWorld::JobState;

// Three attempts in a row end by a fault of their device, so the worker gives it no job. It tests
// the device each minute instead. After the first test that passes, the waiting job runs.
TEST(WorkerSelfTest, AQuarantinedDeviceIsHealed) {
  WorkerWorld world(1);
  world.device_is_gpu = true;
  world.self_test_interval = std::chrono::minutes(30);
  for (int i = 0; i < DeviceBoard::kFaultsToQuarantine; ++i) world.submit("gpu_fault");
  world.start_daemon();
  ASSERT_TRUE(world.run_until_all_over());
  world.device_trouble = "wrong sum";
  auto& next = world.submit("noop");
  const auto since = world.clock.now();
  ASSERT_TRUE(
      world.run_until([&] { return world.clock.now() > since + std::chrono::minutes(10); }));
  EXPECT_EQ(world.shown_state, v1::DEVICE_STATE_QUARANTINED);
  EXPECT_EQ(next.grants, 0) << "a quarantined device takes no job";

  world.device_trouble.clear();
  const auto healed = world.clock.now();
  ASSERT_TRUE(world.run_until([&] { return next.state == JobState::kSucceeded; }));
  EXPECT_LE(world.clock.now() - healed, std::chrono::minutes(2)) << "it is tested each minute";
  EXPECT_TRUE(world.run_until([&] { return world.shown_state == v1::DEVICE_STATE_READY; }));
  EXPECT_EQ(next.grants, 1);
  for (const auto& violation : world.violations) ADD_FAILURE() << violation;
}

// A device that fails its first self-test takes no job, although no job had a fault there.
TEST(WorkerSelfTest, ABrokenDeviceTakesNoJob) {
  WorkerWorld world(1);
  world.device_is_gpu = true;
  world.self_test_interval = std::chrono::minutes(30);
  world.device_trouble = "wrong sum";
  auto& job = world.submit("noop");
  world.start_daemon();
  ASSERT_TRUE(world.run_until([&] { return world.shown_state == v1::DEVICE_STATE_QUARANTINED; }));
  EXPECT_EQ(world.shown_reason, "its self-test failed: wrong sum");
  EXPECT_EQ(job.grants, 0);
  world.device_trouble.clear();
  EXPECT_TRUE(world.run_until_all_over());
  EXPECT_EQ(job.state, JobState::kSucceeded);
}

}  // namespace
}  // namespace quasi::test
