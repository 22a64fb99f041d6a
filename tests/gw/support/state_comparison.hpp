#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstddef>
#include <vector>

#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw::test {

/// Numbers of states in the multiplets of a list of energies, in order.
inline std::vector<int> multiplet_sizes(const std::vector<double>& energy_ry) {
  std::vector<int> sizes;
  for (std::size_t n = 0; n < energy_ry.size(); ++n)
    if (n > 0 && energy_ry[n] - energy_ry[n - 1] < kDegenerate_ry)
      ++sizes.back();
    else
      sizes.push_back(1);
  return sizes;
}

/// Expects two lists of states at one k to have equal energies and equal spans of each multiplet:
/// Σ_ab |⟨a|b⟩|² is the number of its members. The last multiplet may be cut and is left out.
inline void expect_equal_states(const std::vector<double>& energy_ry,
                                const std::vector<Cplx>& coefficients,
                                const std::vector<double>& expected_ry,
                                const std::vector<Cplx>& expected, double tolerance_ry) {
  ASSERT_EQ(energy_ry.size(), expected_ry.size());
  ASSERT_EQ(coefficients.size(), expected.size());
  for (std::size_t n = 0; n < energy_ry.size(); ++n)
    EXPECT_NEAR(energy_ry[n], expected_ry[n], tolerance_ry) << n;
  const std::vector<int> sizes = multiplet_sizes(expected_ry);
  ASSERT_EQ(multiplet_sizes(energy_ry), sizes);
  const std::size_t n_pw = expected.size() / expected_ry.size();
  std::size_t first = 0;
  for (std::size_t m = 0; m + 1 < sizes.size(); ++m) {
    const auto size = static_cast<std::size_t>(sizes[m]);
    double shared = 0.0;
    for (std::size_t a = first; a < first + size; ++a)
      for (std::size_t b = first; b < first + size; ++b) {
        Cplx sum;
        for (std::size_t i = 0; i < n_pw; ++i)
          sum += std::conj(coefficients[a * n_pw + i]) * expected[b * n_pw + i];
        shared += std::norm(sum);
      }
    EXPECT_NEAR(shared, static_cast<double>(size), 1e-10) << "multiplet from state " << first;
    first += size;
  }
}

}  // namespace quasi::gw::test
