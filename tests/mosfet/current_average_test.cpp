#include "workers/mosfet/solver/transport/current_average.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace quasi::mosfet {
namespace {

constexpr SteadyLimit kTight{1e-12, 0.0};

using Current = std::function<double(int, double)>;  // function of the half node and the time

CurrentAverage fed(double window_fs, double end_fs, double slice_fs, const Current& current) {
  CurrentAverage average(window_fs);
  for (double t = 0.0; t < end_fs - 1e-9; t += slice_fs) {
    std::vector<double> integral(7, 0.0);
    constexpr int kParts = 64;
    for (int k = 0; k < 7; ++k)
      for (int part = 0; part < kParts; ++part)
        integral[k] += current(k, t + (part + 0.5) * slice_fs / kParts) * slice_fs / kParts;
    average.add(t + slice_fs, integral);
  }
  return average;
}

TEST(CurrentAverage, AConstantIsItself) {
  const SteadyWindow w = *fed(100.0, 400.0, 10.0, [](int, double) { return 3.0; }).window(kTight);
  EXPECT_NEAR(w.mean, 3.0, 1e-13);
  EXPECT_NEAR(w.spread_contacts, 0.0, 1e-13);
  EXPECT_NEAR(w.drift, 0.0, 1e-13);
  EXPECT_TRUE(w.drift_known);
}

// Plasma ringing with a period of 19.4 fs, as large as the current itself and with a different
// phase at every x. A plain mean over 100 fs leaves 8 % between half nodes; the tapered mean leaves
// less than 0.4 %.
TEST(CurrentAverage, RingingFallsWithTheCubeOfTheWindow) {
  const auto ringing = [](int k, double t) {
    return 1.0 + std::sin(2.0 * M_PI * t / 19.4 + 0.9 * k);
  };
  EXPECT_LT(fed(100.0, 400.0, 5.0, ringing).window(kTight)->spread, 8e-3);
  EXPECT_LT(fed(200.0, 600.0, 5.0, ringing).window(kTight)->spread, 1e-3);
}

// A current that grows by 1e-4 per femtosecond drifts by that times the window, and the mean keeps
// the drift. A charge that accumulates between two half nodes is the difference of their currents.
TEST(CurrentAverage, SlowChangesStay) {
  const SteadyWindow w = *fed(100.0, 400.0, 5.0, [](int k, double t) {
                            return 1.0 + 1e-4 * t + (k == 3 ? 0.02 : 0.0);
                          }).window(kTight);
  EXPECT_NEAR(w.drift, 1e-2, 1e-6);
  EXPECT_NEAR(w.spread, 0.02, 1e-9);
  EXPECT_NEAR(w.mean, 1.0 + 1e-4 * 350.0 + 0.02 / 5.0, 1e-6);
}

// Charge on the contact nodes belongs to the terminals: it shows in spread_contacts only.
TEST(CurrentAverage, TheContactNodesAreApart) {
  const SteadyWindow w =
      *fed(50.0, 200.0, 5.0, [](int k, double) { return k == 0 ? 0.9 : 1.0; }).window(kTight);
  EXPECT_NEAR(w.spread, 0.0, 1e-12);
  EXPECT_NEAR(w.spread_contacts, 0.1, 1e-12);
  EXPECT_NEAR(w.mean, 1.0, 1e-12);
}

// Flicker that never ends: a window of 50 fs does not pass 1e-3, so longer ones are tried and the
// shortest that passes is taken. A looser limit takes a shorter window. Values older than two of
// the longest windows are dropped.
TEST(CurrentAverage, TheShortestSteadyWindowIsTaken) {
  const auto flicker = [](int k, double t) {
    return 1.0 + 0.02 * std::sin(2.0 * M_PI * t / 90.0 + k);
  };
  const CurrentAverage average = fed(50.0, 1000.0, 5.0, flicker);
  const SteadyWindow loose = *average.window({0.05, 0.0}), tight = *average.window({2e-4, 0.0}),
                     none = *average.window({1e-9, 0.0});
  EXPECT_EQ(loose.length_fs, 50.0);
  EXPECT_TRUE(loose.steady);
  EXPECT_TRUE(tight.steady);
  EXPECT_GT(tight.length_fs, 100.0);
  EXPECT_LT(std::max(tight.spread, tight.drift), 2e-4);
  EXPECT_FALSE(none.steady);
  EXPECT_TRUE(average.window({1e-9, 0.05})->steady);  // the absolute limit
  EXPECT_LE(average.slices().size(), 9u * (2u * 400u / 5u + 1u));
}

// With less than two windows of data there is no drift. A restored average continues with equal
// bits.
TEST(CurrentAverage, StartsShortAndIsRestored) {
  const auto wave = [](int k, double t) { return std::cos(0.3 * t + k); };
  EXPECT_FALSE(CurrentAverage(100.0).window(kTight).has_value());
  EXPECT_FALSE(fed(100.0, 150.0, 5.0, wave).window(kTight)->drift_known);
  CurrentAverage whole = fed(40.0, 200.0, 5.0, wave), restored(40.0);
  restored.restore(whole.slices(), 7);
  for (CurrentAverage* each : {&whole, &restored})
    each->add(203.0, std::vector<double>{1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(whole.window(kTight)->profile, restored.window(kTight)->profile);
  EXPECT_EQ(whole.window(kTight)->drift, restored.window(kTight)->drift);
}

}  // namespace
}  // namespace quasi::mosfet
