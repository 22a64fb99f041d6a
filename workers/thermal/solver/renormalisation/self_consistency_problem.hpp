#pragma once

#include <vector>

#include "workers/thermal/kernels/renormalisation/self_consistency_kernels.hpp"
#include "workers/thermal/solver/renormalisation/self_consistent_phonons.hpp"

namespace quasi::thermal {

/// Arranges the sums of self-consistent phonons (docs/theory/thermal.md 14) for a device.
/// @param fourth  must outlive the problem
/// @param pairs   gets the pairs that the fourth order corrects, sorted by atoms and cell, with
///                corrections of zero
SelfConsistencyProblem make_self_consistency_problem(
    const Crystal& crystal, const SecondOrder& bare, const SparseForceConstants& fourth,
    const HarmonicOptions& harmonic, const QMesh& mesh, std::vector<PairCorrection>& pairs);

}  // namespace quasi::thermal
