#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/model/contraction_plan_4ph.hpp"
#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/physics/q_mesh.hpp"
#include "workers/thermal/solver/four_phonon/inversion_4ph.hpp"

namespace quasi::thermal {

/// Sorts fourth-order constants for the contraction (docs/theory/thermal.md 11.4).
/// @param inversion  centre of inversion of crystal and constants: the plan then has half of the
///                   pairs; null: all pairs
/// @throws InvalidInput if the constants are not of fourth order or name an atom that the crystal
///         does not have
ContractionPlan4ph plan_contraction_4ph(const Crystal& crystal,
                                        const SparseForceConstants& fourth_order,
                                        const Inversion* inversion = nullptr);

/// Returns e^{iq·R} of every mesh point and cell of the plan, [n_q][n_cells]{re, im}. Zeros and
/// ones are exact if the phase is a quarter of a turn.
std::vector<double> phase_table_4ph(const QMesh& mesh, const ContractionPlan4ph& plan);

}  // namespace quasi::thermal
