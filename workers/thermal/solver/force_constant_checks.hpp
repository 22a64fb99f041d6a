#pragma once

#include "workers/thermal/input/crystal.hpp"
#include "workers/thermal/input/force_constants.hpp"

namespace quasi::thermal {

/// Largest |Φ(…i…j…) − Φ(…j…i…)| / largest |element|: derivatives commute, so exchanging two slots with
/// their indices must change nothing. Blocks whose partner is missing count whole.
double permutation_violation(const SparseForceConstants& constants);

/// Where the second order says the bonds are.
struct BondCheck {
  double nearest_nm = 0.0;    ///< shortest distance between two atoms
  double strongest_nm = 0.0;  ///< distance of the pair whose block is the largest
};
BondCheck check_bonds(const Crystal& crystal, const SecondOrder& constants);

}  // namespace quasi::thermal
