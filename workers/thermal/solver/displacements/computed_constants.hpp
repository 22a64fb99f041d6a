#pragma once

#include "workers/thermal/input/deck/constants_source.hpp"
#include "workers/thermal/solver/displacements/finite_differences.hpp"

namespace quasi::thermal {

/// Computes the constants of a deck by finite displacements in the potential that `forces` names
/// (docs/theory/thermal.md 15). The supercell is `scell`.
/// @throws InvalidInput for an element that the potential lacks and for a cutoff beyond the limit
ComputedConstants computed_constants(const Control& control, const Crystal& crystal);

/// Returns constants of third or fourth order as blocks with their lattice vectors.
SparseForceConstants sparse_constants(const DisplacementPlan& plan,
                                      const ClusterConstants& constants, int order);

}  // namespace quasi::thermal
