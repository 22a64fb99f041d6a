// Spin-polarised input on a small built-in crystal: two equal channels reproduce the unpolarised
// run.

#include <gtest/gtest.h>

#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

// Two spin channels with equal wavefunctions are the unpolarised crystal: ε⁻¹ and Σ of each spin
// agree to 1e-12, slopes to 1e-11.
TEST(Spin, IdenticalChannelsEqualTheUnpolarisedRun) {
  SmallSilicon s;
  const auto doubled = [](Wavefunctions waves) {
    waves.header.n_spins = 2;
    for (KPointWaves& point : waves.waves) point.coefficients.push_back(point.coefficients[0]);
    const auto repeat = [](auto list) {
      auto result = list;
      result.insert(result.end(), list.begin(), list.end());
      return result;
    };
    waves.first_occupied = repeat(waves.first_occupied);
    waves.last_occupied = repeat(waves.last_occupied);
    waves.energy_ry = repeat(waves.energy_ry);
    waves.occupation = repeat(waves.occupation);
    return waves;
  };
  PlaneWaveField density = s.field.density;
  density.header.n_spins = 2;
  for (Cplx& value : density.values[0]) value *= 0.5;
  density.values.push_back(density.values[0]);
  const MeanField polarised =
      make_mean_field(doubled(s.field.waves), doubled(*s.field.shifted), density);
  const auto epsilon = s.screening(polarised);
  for (std::size_t q = 0; q < epsilon.size(); ++q)
    for (std::size_t i = 0; i < epsilon[q].inverse[0].size(); ++i)
      EXPECT_LT(std::abs(epsilon[q].inverse[0][i] - s.epsilon[q].inverse[0][i]), 1e-12);
  const SigmaOptions o = s.options();
  const auto one = s.sigma(o), two = s.sigma(polarised, epsilon, o);
  ASSERT_EQ(two.size(), 2 * one.size());
  for (std::size_t i = 0; i < two.size(); ++i)
    for (std::size_t l = 0; l < one[i / 2].x_ry.size(); ++l) {
      EXPECT_NEAR(two[i].x_ry[l], one[i / 2].x_ry[l], 1e-12);
      EXPECT_LT(std::abs(two[i].ch_ry[0][l] + two[i].sx_ry[0][l] - one[i / 2].ch_ry[0][l] -
                         one[i / 2].sx_ry[0][l]),
                1e-12);
      EXPECT_LT(std::abs(two[i].slope[l] - one[i / 2].slope[l]), 1e-11);
    }
}

}  // namespace
}  // namespace quasi::gw
