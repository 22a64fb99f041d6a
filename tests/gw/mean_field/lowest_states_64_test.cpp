// 64 atoms by both eigensolvers: the dense one needs minutes of one core.

#include <gtest/gtest.h>

#include "tests/gw/support/state_comparison.hpp"
#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"

namespace quasi::gw {
namespace {

/// Expects that both eigensolvers give the same energies of 64 atoms, to 1e-9 Ry.
void expect_both_methods_agree(EmpiricalCrystal crystal) {
  crystal.cubic_cell = true;
  crystal.repeats = {2, 2, 2};
  crystal.by_velocity = true;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  crystal.eigensolver.method = Eigensolver::kOperator;
  const MeanField found = empirical_mean_field(crystal, *kernels, silent);
  crystal.eigensolver.method = Eigensolver::kDense;
  const MeanField dense = empirical_mean_field(crystal, *kernels, silent);
  test::expect_equal_states(found.waves.energy_ry, found.waves.waves[0].coefficients[0],
                            dense.waves.energy_ry, dense.waves.waves[0].coefficients[0], 1e-9);
}

TEST(LowestStatesOfCrystals, AreThoseOfTheMatrixForSixtyFourAtoms) {
  EmpiricalCrystal silicon;
  silicon.bands = 160;
  expect_both_methods_agree(silicon);
}

// A cut-off of 4 Ry keeps the matrix of both components at an order of 2,700.
TEST(LowestStatesOfCrystals, AreThoseOfTheMatrixForSpinorsOfSixtyFourAtoms) {
  EmpiricalCrystal germanium;
  germanium.name = "germanium";
  germanium.spin_orbit_ry_bohr2 = {0.013, 0.013};
  germanium.wavefunction_cutoff_ry = 4.0;
  germanium.bands = 300;
  expect_both_methods_agree(germanium);
}

}  // namespace
}  // namespace quasi::gw
