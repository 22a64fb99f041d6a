#pragma once

#include <array>

#include "tests/oracle/thermal/oracle_4ph.hpp"
#include "workers/thermal/input/control/control.hpp"
#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"
#include "workers/thermal/solver/four_phonon/contraction_plan_4ph.hpp"

namespace quasi::thermal::test {

/// Temperatures of the problem of every random crystal.
inline constexpr double kRandomTemperatures_k[] = {80.0, 300.0, 900.0};

/// A crystal of random numbers in two forms: as the oracle reads it and as the kernels do.
/// Fourth-order constants are permutation symmetric. The first and the last point of the mesh have
/// rows.
struct RandomCrystal4 {
  oracle::Crystal4ph oracle;
  Problem4ph problem;
};

/// Draws a crystal; equal seeds give equal crystals.
RandomCrystal4 random_crystal_4ph(int n_atoms, std::array<int, 3> mesh, unsigned seed,
                                  const Rules4ph& rules);

/// Gives every point of the mesh rows.
/// @param exchange  true: λ and λ' are exchangeable, and each pair is visited once
void take_all_points(RandomCrystal4& crystal, bool exchange);

/// Makes the modes at −q those of q under time reversal: ω(−q) = ω(q), e(−q) = e(q)*, p(−q) =
/// −p(q). The image in the first zone of −q is the opposite of that of q.
void impose_time_reversal(RandomCrystal4& crystal);

}  // namespace quasi::thermal::test
