#pragma once

#include "workers/mosfet/solver/sweep/sweep_state.hpp"

namespace quasi::mosfet {

/// Returns the number of bias points that every device of a sweep with the beam scheme solves at
/// the same time. Several points share a CUDA device, so that one point's Schrödinger–Poisson
/// solution on the host hides behind the transport of others.
/// @throws OutOfMemory if not even one point fits into the memory budget
std::size_t beam_points_at_once(const SweepState& sweep);

/// Solves chains of points from the queue of a sweep one after the other, until none is left or
/// `stop` is set. Each point starts from the last two of its chain (beam_start.hpp), so that its
/// bits depend on its chain alone.
/// @param n_beside  number of threads of this process that do so at the same time
/// @throws NotConverged, Cancelled, PeerFailed
void run_beam_on_device(SweepState* sweep, const Device& device, std::size_t n_beside,
                        const std::atomic<bool>& stop);

}  // namespace quasi::mosfet
