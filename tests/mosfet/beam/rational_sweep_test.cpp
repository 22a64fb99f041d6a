// Tests the interpolation of responses in frequency.

#include "workers/mosfet/solver/beam/small_signal/rational_sweep.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "workers/backend/error.hpp"

namespace quasi::mosfet {
namespace {

using Complex = std::complex<double>;

std::vector<double> decades(int from, int to, int per_decade) {
  std::vector<double> out;
  for (int n = 0; n <= (to - from) * per_decade; ++n)
    out.push_back(std::pow(10.0, from + static_cast<double>(n) / per_decade));
  return out;
}

// Responses with three time constants and a resonance: a hundred frequencies follow from a dozen
// solutions, and two functions that add to zero do so everywhere.
TEST(RationalSweep, AHundredFrequenciesFollowFromADozen) {
  const auto response = [](double f) {
    const Complex s(0.0, 2.0 * 3.14159265358979 * f);
    const Complex a = 1.0 / (1.0 + s * 1e-13) + 0.3 * s / (1.0 + s * 4e-12) +
                      2.0 / (1.0 + s * 2e-14 + s * s * 1e-27) + 1e-13 * s;
    return std::vector<Complex>{a, -a, 1.0 + 1e-12 * s};
  };
  const std::vector<double> frequencies = decades(9, 13, 25);
  int calls = 0;
  const SweptValues found = rational_sweep(
      frequencies, [&](double f) { return ++calls, response(f); }, 1e-6);
  EXPECT_EQ(found.solutions, calls);
  EXPECT_LE(calls, 15);
  for (std::size_t n = 0; n < frequencies.size(); ++n) {
    const std::vector<Complex> exact = response(frequencies[n]);
    EXPECT_LT(std::abs(found.values[n][0] - exact[0]), 1e-6 * std::abs(exact[0])) << n;
    EXPECT_LT(std::abs(found.values[n][0] + found.values[n][1]), 1e-12 * std::abs(exact[0])) << n;
  }
}

// A function that no short rational function meets is solved for everywhere.
TEST(RationalSweep, ARoughFunctionIsSolvedForAtEveryFrequency) {
  const std::vector<double> frequencies = decades(9, 10, 20);
  const SweptValues found = rational_sweep(
      frequencies,
      [](double f) { return std::vector<Complex>{std::fabs(std::sin(f * 1e-8)) + 0.1}; }, 1e-9);
  EXPECT_EQ(found.solutions, 21);
}

TEST(RationalSweep, OneAndTwoFrequenciesAreSolved) {
  for (const std::vector<double>& frequencies : {std::vector{0.0}, {0.0, 1e9}}) {
    const SweptValues found = rational_sweep(
        frequencies, [](double f) { return std::vector<Complex>{1.0 + f}; }, 1e-6);
    EXPECT_EQ(found.solutions, static_cast<int>(frequencies.size()));
    EXPECT_EQ(found.values.back()[0], 1.0 + frequencies.back());
  }
}

}  // namespace
}  // namespace quasi::mosfet
