#pragma once

#include <atomic>

#include "workers/mosfet/solver/beam/beam_point.hpp"
#include "workers/mosfet/solver/sweep/sweep_state.hpp"

namespace quasi::mosfet {

/// Runs the transient of the only bias point of a chain to run.t_end_fs (docs/theory/mosfet.md
/// 17.10). It begins with the steady state at t = 0, or with the checkpoint of an earlier attempt,
/// and publishes checkpoints and the result.
/// @param chain  number of the chain in `sweep`
/// @param stop   becomes true when another device of this rank has failed
/// @throws NotConverged with the bias, the time and a remedy
void run_beam_transient(int chain, const BeamDevice& device, BeamKernels& kernels,
                        const std::atomic<bool>& stop, SweepState& sweep);

}  // namespace quasi::mosfet
