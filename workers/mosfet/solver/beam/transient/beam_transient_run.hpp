#pragma once

#include <atomic>

#include "workers/mosfet/solver/beam/beam_point.hpp"
#include "workers/mosfet/solver/sweep/sweep_state.hpp"

namespace quasi::mosfet {

/// Runs the transient of the only bias point of a chain: from the steady state at t = 0, or from
/// the checkpoint of an earlier attempt, to run.t_end_fs. Publishes its state and its result.
/// @param stop  another device of this rank has failed
void run_beam_transient(int chain, const BeamDevice& device, BeamKernels& kernels,
                        const std::atomic<bool>& stop, SweepState& sweep);

}  // namespace quasi::mosfet
