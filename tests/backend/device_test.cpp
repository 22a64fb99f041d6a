#include "workers/backend/device/device.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_directory.hpp"
#include "workers/backend/device/host.hpp"
#include "workers/backend/device/memory_budget.hpp"
#include "workers/backend/error.hpp"
#include "workers/backend/view.hpp"

namespace quasi {
namespace {

TEST(Device, ListsTheCpuFirst) {
  const auto devices = list_devices();
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices.front().name(), "cpu");
  EXPECT_GT(devices.front().memory_bytes, 0);
}

// A machine that shall test CUDA must not pass the tests without a CUDA device.
TEST(Device, HasWhatTheMachineWasSaidToHave) {
  const char* required = std::getenv("QUASI_REQUIRE_DEVICE");
  if (required == nullptr) GTEST_SKIP() << "QUASI_REQUIRE_DEVICE is not set";
  EXPECT_NO_THROW(find_device(required)) << cuda_absence();
}

TEST(Device, NamesWhatIsMissingAndWhy) {
  try {
    find_device("cuda:999");
    FAIL() << "cuda:999 was found";
  } catch (const BackendAbsent& failure) {
    EXPECT_NE(std::string(failure.what()).find("cuda:999"), std::string::npos);
    EXPECT_NE(std::string(failure.what()).find("--device cpu"), std::string::npos);
  }
}

/// Writes a file below a directory, with the directories above it.
void put(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// The smallest limit of the groups of a process counts, less what they use but for the page cache.
// Without a limit the memory of the host does.
TEST(Host, UsableMemoryIsWhatTheControlGroupsLeave) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path root = directory.path(), groups = root / "sys/fs/cgroup";
  EXPECT_EQ(usable_memory_bytes(root), 0);
  put(root / "proc/meminfo", "MemTotal: 2000 kB\nMemAvailable:    1000 kB\n");
  EXPECT_EQ(usable_memory_bytes(root), 1024000);
  put(root / "proc/self/cgroup", "0::/jobs/one\n");
  put(groups / "jobs/one/memory.max", "max\n");
  put(groups / "jobs/one/memory.current", "300000\n");
  EXPECT_EQ(usable_memory_bytes(root), 1024000);
  put(groups / "jobs/memory.max", "500000\n");
  put(groups / "jobs/memory.current", "400000\n");
  put(groups / "jobs/memory.stat", "anon 5\ninactive_file 100000\n");
  EXPECT_EQ(usable_memory_bytes(root), 200000);
  put(root / "proc/self/cgroup", "9:cpu:/\n4:memory:/job\n0::/\n");
  put(groups / "memory/job/memory.limit_in_bytes", "700000\n");
  put(groups / "memory/job/memory.usage_in_bytes", "100000\n");
  EXPECT_EQ(usable_memory_bytes(root), 600000);
  put(groups / "memory/job/memory.usage_in_bytes", "900000\n");
  EXPECT_EQ(usable_memory_bytes(root), 1) << "a full group has no room, which 0 would not say";
  EXPECT_GT(usable_memory_bytes(), 0);
}

TEST(Device, RefusesUnknownWords) {
  EXPECT_THROW(find_device("gpu"), InvalidInput);
  EXPECT_THROW(find_device("cuda:"), InvalidInput);
  EXPECT_THROW(find_device("cuda:-1"), InvalidInput);
}

TEST(MemoryBudget, SaysWhatDoesNotFit) {
  EXPECT_EQ(items_that_fit(100, 40, 20, "list"), 3);
  EXPECT_THROW(items_that_fit(50, 40, 20, "list"), OutOfMemory);
}

// Data that must lie whole may pass the budget of a task, but not the memory of its device.
TEST(MemoryBudget, GrowsBesideDataThatMustLieWhole) {
  EXPECT_EQ(budget_beside(10'000, 20'000, 1'000, 10), 10'000) << "64 items fit";
  EXPECT_EQ(budget_beside(10'000, 20'000, 12'000, 10), 12'640);
  EXPECT_EQ(budget_beside(10'000, 12'639, 12'000, 10), 10'000) << "the device is too small";
  EXPECT_EQ(budget_beside(10'000, 0, 12'000, 10), 10'000) << "its memory is not known";
}

TEST(View, IsRowMajor) {
  double values[6] = {0, 1, 2, 3, 4, 5};
  const View<double, 2> matrix{values, {2, 3}};
  EXPECT_EQ(matrix(1, 0), 3.0);
  EXPECT_EQ(matrix(0, 2), 2.0);
  EXPECT_EQ(matrix.size(), 6);
}

}  // namespace
}  // namespace quasi
