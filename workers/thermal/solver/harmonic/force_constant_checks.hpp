#pragma once

#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/force_constants.hpp"

namespace quasi::thermal {

/// Largest |Φ(…i…j…) − Φ(…j…i…)| over the largest |element|. Derivatives commute, so that an
/// exchange of two slots with their indices must change nothing. A block whose partner is missing
/// counts with its full size.
double permutation_violation(const SparseForceConstants& constants);

/// Bonds that the second-order constants describe.
struct BondCheck {
  double nearest_nm = 0.0;    ///< shortest distance between two atoms
  double strongest_nm = 0.0;  ///< distance of the pair whose block is the largest
  /// Largest |Σ (Φ_αβ d_γ − Φ_γβ d_α)| over the neighbours of an atom, as a share of Σ |Φ| |d|: the
  /// force that a rotation of the whole crystal would exert (Born and Huang 1954, §23). The exact
  /// force is zero. Atoms at other positions than those of the constants break this law, even where
  /// every operation of the space group holds.
  double rotation = 0.0;
};
BondCheck check_bonds(const Crystal& crystal, const SecondOrder& constants);

}  // namespace quasi::thermal
