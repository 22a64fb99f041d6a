#pragma once

#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {

/// Calculates the first orders of the table [perturbation] after Σ, on the devices of the team,
/// and those in phonon modes. Collective.
/// @throws InvalidInput, NotConverged as displacement_elements() does
void solve_displacements(const Deck& deck, const StepContext& context, Calculation& run);

}  // namespace quasi::gw
