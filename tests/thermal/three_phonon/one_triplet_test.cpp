// Three phonons, smallest example: one point q = 0, one atom, three modes, one triplet.
//
// The modes move the atom along x, y and z with ω = 2, 3 and 5 rad/ps. Energy is conserved by
// 2 + 3 = 5 alone. Every number below can be checked with pencil and paper
// (docs/theory/thermal.md 6).

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "tests/support/every_device.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"

namespace quasi::thermal {
namespace {

constexpr double kMass_amu = 2.0;
constexpr double kConstant = 6.0;  ///< Φ_xyz and its permutations, eV/Å³

/// Φ of one atom with itself: 6 where the three axes are x, y and z in any order, else 0.
SparseForceConstants third_order() {
  SparseForceConstants constants{.order = 3, .atom = {0, 0, 0}, .cell = std::vector<int>(6, 0)};
  for (int element = 0; element < 27; ++element) {
    std::array<int, 3> axis{element / 9, element / 3 % 3, element % 3};
    std::sort(axis.begin(), axis.end());
    constants.tensor.push_back(axis == std::array<int, 3>{0, 1, 2} ? kConstant : 0.0);
  }
  return constants;
}

/// Modes whose spreads along one axis are 0, √2 and 2√2 rad/ps.
Modes three_modes() {
  Modes modes;
  modes.n_q = 1;
  modes.n_branches = 3;
  modes.omega_rad_ps = {2.0, 3.0, 5.0};
  modes.eigenvector = {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0};
  modes.spread_rad_ps.assign(9, 0.0);
  modes.spread_rad_ps[3] = std::numbers::sqrt2;
  modes.spread_rad_ps[6] = 2.0 * std::numbers::sqrt2;
  modes.velocity_km_s = modes.spread_rad_ps;
  return modes;
}

class OneTriplet : public quasi::test::OnEveryDevice {};

TEST_P(OneTriplet, HasTheRatesOfPencilAndPaper) {
  const Modes modes = three_modes();
  ThreePhononProblem problem;
  problem.mesh.n[0] = problem.mesh.n[1] = problem.mesh.n[2] = 1;
  problem.n_atoms = 1;
  problem.modes = &modes;
  problem.fc3 = third_order();
  problem.mass_amu = {kMass_amu};
  problem.rows = {0};
  problem.first_zone = {{0, 0, 0}};
  problem.broadening = Broadening::kAdaptiveMax;
  problem.cut = 0.1;  // no process but 2 + 3 = 5 is within the window
  problem.rate_constant = 1.0;
  problem.hbar_over_kb_k_ps = 300.0 * std::numbers::ln2;  // n = 1/(2^ω − 1) at 300 K

  const auto kernels = make_three_phonon_kernels(GetParam());
  kernels->load(problem);
  SilentProgress silent;
  const ThreePhononRates rates = kernels->rates({300.0}, false, silent);

  // n = 1/3, 1/7 and 1/31; |V|² = (Φ/√(m m m))²; W = B δ/(ω ω' ω'') with ω ω' ω'' = 2·3·5.
  const double n_x = 1.0 / 3.0, n_y = 1.0 / 7.0, n_z = 1.0 / 31.0;
  const double squared = kConstant * kConstant / std::pow(kMass_amu, 3);
  const double product = 2.0 * 3.0 * 5.0;
  // σ is the distance of the spreads of λ' and λ'' over √2, and δ(0) = 1/(σ√π).
  const double delta_1 = 1.0 / std::sqrt(std::numbers::pi);  // y and z, x and y: σ = 1
  const double delta_2 = 0.5 * delta_1;                      // x and z: σ = 2

  // x + y -> z, from x: B = n' − n''.
  const double absorption_x = (n_y - n_z) * delta_1 / product * squared;
  EXPECT_NEAR(rates.absorption_per_ps[0], absorption_x, 1e-12 * absorption_x);
  // The same process from y.
  const double absorption_y = (n_x - n_z) * delta_2 / product * squared;
  EXPECT_NEAR(rates.absorption_per_ps[1], absorption_y, 1e-12 * absorption_y);
  // z -> x + y and z -> y + x with ½ each: B = 1 + n' + n''.
  const double emission_z = (1.0 + n_x + n_y) * delta_1 / product * squared;
  EXPECT_NEAR(rates.emission_per_ps[2], emission_z, 1e-12 * emission_z);

  EXPECT_EQ(rates.absorption_per_ps[2], 0.0);
  EXPECT_EQ(rates.emission_per_ps[0], 0.0);
  EXPECT_EQ(rates.emission_per_ps[1], 0.0);
  EXPECT_EQ(rates.n_absorption, 2);
  EXPECT_EQ(rates.n_emission, 2);
  EXPECT_NEAR(rates.normal_absorption_per_ps[0], absorption_x, 1e-12 * absorption_x)
      << "at q = 0 every process is normal";
}

QUASI_ON_EVERY_DEVICE(OneTriplet);

}  // namespace
}  // namespace quasi::thermal
