#pragma once

#include <array>

#include "tests/oracle/thermal/oracle_4ph.hpp"
#include "workers/thermal/input/control.hpp"
#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"
#include "workers/thermal/solver/four_phonon/contraction_plan_4ph.hpp"

namespace quasi::thermal::test {

/// Of every random crystal's problem, K.
inline constexpr double kRandomTemperatures_k[] = {80.0, 300.0, 900.0};

/// A crystal of random numbers, said twice: as the oracle reads it and as the kernels do.
/// Fourth-order constants are permutation symmetric; the first and the last point of the mesh have
/// rows.
struct RandomCrystal4 {
  oracle::Crystal4ph oracle;
  Problem4ph problem;
};

RandomCrystal4 random_crystal_4ph(int n_atoms, std::array<int, 3> mesh, unsigned seed,
                                  const Rules4ph& rules);

/// Every point of the mesh gets rows.
/// @param exchange  λ and λ' change places
void take_all_points(RandomCrystal4& crystal, bool exchange);

/// Gives −q what q has: the same ω, e(−q) = e(q)*, p(−q) = −p(q), the opposite image in the first
/// zone.
void impose_time_reversal(RandomCrystal4& crystal);

}  // namespace quasi::thermal::test
