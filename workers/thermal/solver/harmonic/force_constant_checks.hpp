#pragma once

#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/force_constants.hpp"

namespace quasi::thermal {

/// Largest |Φ(…i…j…) − Φ(…j…i…)| / largest |element|: derivatives commute, so exchanging two slots
/// with their indices must change nothing. Blocks whose partner is missing count whole.
double permutation_violation(const SparseForceConstants& constants);

/// Bonds as the second-order constants describe them.
struct BondCheck {
  double nearest_nm = 0.0;    ///< shortest distance between two atoms
  double strongest_nm = 0.0;  ///< distance of the pair whose block is the largest
  /// Largest |Σ (Φ_αβ d_γ − Φ_γβ d_α)| over the neighbours of an atom, of Σ |Φ| |d|: the force that
  /// a rotation of the whole crystal would exert (Born and Huang 1954, §23). It is none; atoms that
  /// stand elsewhere than where the constants were made break it, also where every operation of the
  /// space group stands.
  double rotation = 0.0;
};
BondCheck check_bonds(const Crystal& crystal, const SecondOrder& constants);

}  // namespace quasi::thermal
