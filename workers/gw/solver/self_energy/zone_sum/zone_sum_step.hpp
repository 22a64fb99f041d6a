#pragma once

#include <vector>

#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/step_context.hpp"

namespace quasi::gw {

/// Completes the sums of Σ over the q-grid. The samples of a slab replace q → 0 where they can
/// (samples_replace_zero()), and the error of the sum is estimated. Outer loops and the full matrix
/// of Σ keep the samples of the head alone, since their sums use states of the grid only.
/// @param samples  ε⁻¹ at the samples of q → 0; empty: there are none
void complete_zone_sum(const Deck& deck, const std::vector<DielectricMatrix>& samples,
                       const StepContext& context, Calculation& run);

}  // namespace quasi::gw
