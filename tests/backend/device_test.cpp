#include "workers/backend/device/device.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

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

TEST(Device, RefusesUnknownWords) {
  EXPECT_THROW(find_device("gpu"), InvalidInput);
  EXPECT_THROW(find_device("cuda:"), InvalidInput);
  EXPECT_THROW(find_device("cuda:-1"), InvalidInput);
}

TEST(MemoryBudget, SaysWhatDoesNotFit) {
  EXPECT_EQ(items_that_fit(100, 40, 20, "list"), 3);
  EXPECT_THROW(items_that_fit(50, 40, 20, "list"), OutOfMemory);
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
