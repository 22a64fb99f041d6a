// 64 atoms by both eigensolvers: the dense one needs minutes of one core.

#include <gtest/gtest.h>

#include "tests/gw/support/state_comparison.hpp"
#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"

namespace quasi::gw {
namespace {

TEST(LowestStatesOfCrystals, AreThoseOfTheMatrixForSixtyFourAtoms) {
  EmpiricalCrystal crystal;
  crystal.cubic_cell = true;
  crystal.repeats = {2, 2, 2};
  crystal.bands = 160;
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

}  // namespace
}  // namespace quasi::gw
