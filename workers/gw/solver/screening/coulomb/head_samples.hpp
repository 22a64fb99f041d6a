#pragma once

#include <vector>

#include "workers/gw/model/epsilon_options.hpp"
#include "workers/gw/solver/screening/epsilon.hpp"
#include "workers/gw/solver/step_context.hpp"

namespace quasi::gw {

/// ε⁻¹ of a slab at the samples of q → 0.
struct SlabSamples {
  std::vector<std::vector<HeadSample>> heads;  ///< ε⁻¹_00, [n_frequencies][n_points]
  std::vector<DielectricMatrix> matrices;      ///< whole matrices with the plane waves of q = 0
};

/// Calculates ε⁻¹(q; ω) of a slab at the points of CoulombInteraction::sample_points()
/// [jornada2017] (docs/theory/gw.md 5.2). At each q the occupied states are those of H at k + q.
/// Finished points go into the checkpoint.
/// @param field  is changed during the call, and the same after it
/// @throws InvalidInput if H is not at hand
SlabSamples slab_samples(MeanField& field, const EpsilonOptions& options,
                         const StepContext& context);

}  // namespace quasi::gw
