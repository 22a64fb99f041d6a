#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/service/support/power_cut_disk.hpp"

namespace quasi::server::test {

/// Suite of power cuts under one model of the bytes that survive.
class PowerCutSweep : public testing::TestWithParam<PowerCutDisk::Loss> {
 protected:
  /// Cuts the power before one change after the other. Each model takes every third point, so that
  /// one run meets all points. QUASI_ALL_POINTS=1 runs all points under every model.
  /// @param live_and_die  called with point and model; returns false once the story ended before
  ///                      its point
  /// @param least_points  the test fails if the story has fewer points than this
  template <class LiveAndDie>
  void sweep(LiveAndDie live_and_die, std::int64_t least_points) {
    const std::int64_t stride = std::getenv("QUASI_ALL_POINTS") != nullptr ? 1 : 3;
    std::int64_t points = 0;
    for (std::int64_t point = 1 + static_cast<std::int64_t>(GetParam()) % stride;
         live_and_die(point, GetParam()); point += stride) {
      ++points;
      ASSERT_FALSE(HasFailure()) << "with the power cut before change " << point;
    }
    std::cout << "crash points: " << points << '\n';
    EXPECT_GE(points, least_points);
  }
};

inline auto all_losses() {
  using Loss = PowerCutDisk::Loss;
  return testing::Values(Loss::kNothing, Loss::kEverything, Loss::kRandomPart);
}

/// Names the model at the end of a test's name.
inline std::string name_of_loss(const testing::TestParamInfo<PowerCutDisk::Loss>& instance) {
  using Loss = PowerCutDisk::Loss;
  return instance.param == Loss::kNothing      ? "KeepingAll"
         : instance.param == Loss::kEverything ? "DroppingUnsynced"
                                               : "DroppingPart";
}

}  // namespace quasi::server::test
