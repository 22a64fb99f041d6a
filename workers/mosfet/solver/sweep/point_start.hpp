#pragma once

#include "workers/mosfet/solver/sweep/sweep_state.hpp"

namespace quasi::mosfet {

/// The state in which a bias point begins.
///
/// After another point of its chain it is the last state of that point, with the potential shifted
/// by Laplace's equation for the change of the given potentials. Otherwise it is the steady state
/// on a coarser mesh where run.coarse_start allows it, else the quasi-equilibrium of the bias. A
/// restart finds the same state again.
/// @param before  last state of the point before; null: there is none
/// @throws NotConverged where the quasi-equilibrium does not converge
PointState make_point_start(const SweepState& sweep, const Device& device, int point,
                            const PointBoundary& boundary, const PointState* before);

}  // namespace quasi::mosfet
