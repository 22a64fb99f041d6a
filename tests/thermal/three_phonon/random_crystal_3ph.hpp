#pragma once

#include "tests/oracle/thermal/oracle_3ph.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"

namespace quasi::thermal::test {

/// A crystal of random numbers in two forms: as the oracle reads it and as the kernels read it.
/// Third-order constants are symmetric under permutations of their legs. Eigenvectors are random
/// unitary matrices. One mode has zero frequency and one is imaginary, so both are inactive.
struct RandomCrystal3 {
  oracle::Crystal3ph oracle;
  Modes modes;
  ThreePhononProblem problem;  ///< points to `modes`, therefore the crystal cannot be copied
  RandomCrystal3() = default;
  RandomCrystal3(const RandomCrystal3&) = delete;
  RandomCrystal3& operator=(const RandomCrystal3&) = delete;
};

/// Makes the crystal that belongs to a seed.
/// @param mesh  number of points along each axis; some of them are rows of the problem
std::unique_ptr<RandomCrystal3> random_crystal_3ph(int n_atoms, Index3 mesh, unsigned seed,
                                                   Broadening broadening);

}  // namespace quasi::thermal::test
