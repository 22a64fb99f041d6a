#pragma once

#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"

namespace quasi::mosfet {

/// Repeats the sweep with half of N_w, N_φ, N_x and N_z in turn, as far as the mesh rule admits
/// them. For each axis it adds `mesh_<axis>_current_a_per_m` and `mesh_<axis>_error_a_per_m` = |I −
/// I_half|/3 to every point. The second number is the distance to the converged value if the error
/// is of second order, and too large if the order is higher. `mesh_error_a_per_m` is the sum over
/// the axes.
void add_mesh_study(const Deck& deck, const SweepOptions& options, Progress& progress,
                    std::vector<PointResult>* points);

}  // namespace quasi::mosfet
