#pragma once

#include <vector>

#include "workers/gw/model/epsilon_options.hpp"
#include "workers/gw/solver/screening/epsilon.hpp"
#include "workers/gw/solver/step_context.hpp"

namespace quasi::gw {

/// Calculates ε⁻¹_00(q; ω) of a slab at the points of CoulombInteraction::sample_points()
/// [jornada2017] (docs/theory/gw.md 5.2). At each q the occupied states are those of H at k + q.
/// Finished points go into the checkpoint.
/// @param field  is changed during the call, and the same after it
/// @return [n_frequencies][n_points]
/// @throws InvalidInput if H is not at hand
std::vector<std::vector<HeadSample>> head_samples(MeanField& field, const EpsilonOptions& options,
                                                  const StepContext& context);

}  // namespace quasi::gw
