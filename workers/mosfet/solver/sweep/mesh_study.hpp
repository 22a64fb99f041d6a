#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/backend/study/study_runner.hpp"
#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Computes all points of a deck. @param checkpoint_directory  empty: no checkpoints are kept
using PointsOfDeck = std::function<std::vector<PointResult>(
    const Deck& deck, const std::filesystem::path& checkpoint_directory)>;

/// Error that the mesh of one axis implies.
struct AxisError {
  double error = 0;             ///< estimate of |I − I of an infinitely fine axis|
  std::optional<double> order;  ///< observed order; absent if it was not or could not be observed
};

/// Returns the error of a current from the currents with half and a quarter of the cells.
///
/// With d = |I − I_half| and an observed order p = log₂(|I_half − I_quarter|/d), the error is
/// d/(2^p − 1) with p limited to ½ … 2. Differences of opposite sign have no order, and the error
/// is the larger of them. Without a quarter, p = 2 is assumed.
AxisError axis_error(double current, double half, std::optional<double> quarter);

/// Repeats a sweep with a half and a quarter of the cells of each axis in turn: N_w, N_φ, N_x and
/// N_z, or N_x, N_z, N_κ and the number of cells of H for the beam scheme. An axis that the mesh
/// rule does not halve is doubled instead, and 4/3 of the change is its error.
///
/// Every point gets `mesh_<axis>_current_a_per_m`, `mesh_<axis>_error_a_per_m` and, where it is
/// observed, `mesh_<axis>_order`. `mesh_error_a_per_m` is the sum over the axes. It is left out if
/// an axis can be neither halved nor doubled, and the log says so.
///
/// With a small signal the sweeps have the lowest frequency of the deck and the lowest one above
/// zero. g_m, g_ds, C_GG and the extrapolated f_T then get mesh errors of the same kind, such as
/// `transconductance_mesh_error_s_per_m`.
void add_mesh_study(const Deck& deck, const PointsOfDeck& points_of, StudyRunner& runner,
                    Progress& progress, std::vector<PointResult>* points);

}  // namespace quasi::mosfet
