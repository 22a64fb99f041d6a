#pragma once

#include "workers/mosfet/solver/sweep/sweep_state.hpp"

namespace quasi::mosfet {

/// Returns the state in which a bias point begins.
///
/// If another point of its chain precedes it, the start is the last state of that point. Its
/// potential is shifted by Laplace's equation for the change of the given potentials. Otherwise it
/// is the steady state on a coarser mesh if run.coarse_start allows it, else the quasi-equilibrium
/// of the bias. A restart computes an equal state.
/// @param before  last state of the previous point; null: there is none
/// @throws NotConverged if the quasi-equilibrium does not converge
PointState make_point_start(const SweepState& sweep, const Device& device, int point,
                            const PointBoundary& boundary, const PointState* before);

}  // namespace quasi::mosfet
