#pragma once

#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"

namespace quasi::mosfet {

/// Runs the sweep again with half of N_w, N_φ, N_x and N_z in turn (those that the mesh rule
/// admits) and adds to every point what that implies: per axis `mesh_<axis>_current_a_per_m` and
/// `mesh_<axis>_error_a_per_m` = |I − I_half|/3, the distance to the converged value where the
/// error is of second order (and more than it where the order is higher), and their sum
/// `mesh_error_a_per_m`.
void add_mesh_study(const Deck& deck, const SweepOptions& options, Progress& progress,
                    std::vector<PointResult>* points);

}  // namespace quasi::mosfet
