// Tests the arguments and the environment of an engine.

#include <gtest/gtest.h>

#include <algorithm>

#include "workers/daemon/attempt/engine_launch.hpp"
#include "workers/daemon/attempt/one_line.hpp"

namespace quasi::test {
namespace {

bool has(const LaunchPlan& plan, const std::string& variable) {
  return std::ranges::find(plan.environment, variable) != plan.environment.end();
}

LaunchPlan plan_of(std::uint32_t cpus, std::uint64_t ram_bytes, std::uint32_t ranks,
                   std::size_t n_slots, std::uint64_t max_ram_bytes = 0) {
  v1::Grant grant;
  grant.mutable_spec()->mutable_resources()->set_cpus(cpus);
  grant.mutable_spec()->mutable_resources()->set_ram_bytes(ram_bytes);
  grant.mutable_spec()->mutable_resources()->set_ranks(ranks);
  EngineSettings settings;
  settings.threads = 4;
  settings.max_ram_bytes = max_ram_bytes;
  return launch_plan(grant, std::vector<WorkerDevice>(n_slots), settings,
                     {.cache = "/attempts/7/cache"});
}

// A job that requests 1,024 threads would stall the jobs beside it.
TEST(Launch, AJobGetsNoMoreThreadsThanItsSlotsShare) {
  EXPECT_TRUE(has(plan_of(0, 0, 0, 1), "OMP_NUM_THREADS=4"));
  EXPECT_TRUE(has(plan_of(2, 0, 0, 1), "OMP_NUM_THREADS=2"));
  EXPECT_TRUE(has(plan_of(1'024, 0, 0, 1), "OMP_NUM_THREADS=4"));
  EXPECT_TRUE(has(plan_of(1'024, 0, 0, 3), "OPENBLAS_NUM_THREADS=12"));
  EXPECT_TRUE(has(plan_of(1'024, 0, 2, 2), "OMP_NUM_THREADS=4")) << "two ranks share two slots";
}

// An engine that cannot write a cache compiles the same kernels for each of its plans.
TEST(Launch, AJobKeepsCompiledKernelsInItsOwnFolder) {
  EXPECT_TRUE(has(plan_of(0, 0, 0, 1), "CUDA_CACHE_PATH=/attempts/7/cache"));
}

TEST(Launch, TheMemoryOfAJobIsThatOfAllItsRanks) {
  EXPECT_EQ(plan_of(0, 0, 0, 1).max_ram_bytes, 0U);
  EXPECT_EQ(plan_of(0, 8'000, 0, 1).max_ram_bytes, 8'000U);
  EXPECT_EQ(plan_of(0, 8'000, 2, 2).max_ram_bytes, 4'000U);
}

// A job that states no memory, or too much, would take the memory of the jobs beside it.
TEST(Launch, AJobGetsNoMoreMemoryThanTheWorkerAllows) {
  EXPECT_EQ(plan_of(0, 0, 0, 1, 6'000).max_ram_bytes, 6'000U);
  EXPECT_EQ(plan_of(0, 8'000, 0, 1, 6'000).max_ram_bytes, 6'000U);
  EXPECT_EQ(plan_of(0, 2'000, 0, 1, 6'000).max_ram_bytes, 2'000U);
  EXPECT_EQ(plan_of(0, 0, 2, 2, 6'000).max_ram_bytes, 3'000U);
}

TEST(OneLine, IsCutBetweenCharacters) {
  EXPECT_EQ(one_line("a\nb\tc", 100), "a b c");
  EXPECT_EQ(one_line("\xce\xba\xce\xba", 3), "\xce\xba");
}

}  // namespace
}  // namespace quasi::test
