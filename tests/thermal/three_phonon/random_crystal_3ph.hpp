#pragma once

#include "tests/oracle/thermal/oracle_3ph.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"

namespace quasi::thermal::test {

/// A crystal of random numbers, said twice: as the oracle reads it and as the kernels do.
/// Third-order constants are permutation symmetric; eigenvectors are random unitary matrices; some
/// modes are still.
struct RandomCrystal3 {
  oracle::Crystal3ph oracle;
  Modes modes;
  ThreePhononProblem problem;  ///< points to `modes`: do not copy
  RandomCrystal3() = default;
  RandomCrystal3(const RandomCrystal3&) = delete;
  RandomCrystal3& operator=(const RandomCrystal3&) = delete;
};

std::unique_ptr<RandomCrystal3> random_crystal_3ph(int n_atoms, Index3 mesh, unsigned seed,
                                                   Broadening broadening);

}  // namespace quasi::thermal::test
