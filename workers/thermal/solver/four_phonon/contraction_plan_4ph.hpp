#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/model/contraction_plan_4ph.hpp"
#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/physics/q_mesh.hpp"
#include "workers/thermal/solver/four_phonon/inversion_4ph.hpp"

namespace quasi::thermal {

/// @throws InvalidInput if the constants are not of fourth order or name atoms the crystal has not.
/// @param inversion  if given, the plan of half the pairs
ContractionPlan4ph plan_contraction_4ph(const Crystal& crystal,
                                        const SparseForceConstants& fourth_order,
                                        const Inversion* inversion = nullptr);

/// e^{iq·R} of every mesh point and cell of the plan, [n_q][n_cells]{re, im}; exact zeros and ones
/// where the phase is a quarter turn.
std::vector<double> phase_table_4ph(const QMesh& mesh, const ContractionPlan4ph& plan);

}  // namespace quasi::thermal
