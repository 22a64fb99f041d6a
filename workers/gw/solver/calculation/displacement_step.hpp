#pragma once

#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/screening/grouped_screening.hpp"

namespace quasi::gw {

/// Calculates the first orders of the table [perturbation] after Σ, on the devices of the team,
/// and those in phonon modes. Blocks of random vectors give their statistical errors. All ranks
/// call it together.
/// @param groups  sums of χ by groups, which give ε⁻¹ without one block of random vectors.
///                Null means that every block takes ε⁻¹ of the job.
/// @throws InvalidInput, NotConverged as displacement_elements() does
void solve_displacements(const Deck& deck, GroupedScreening* groups, const StepContext& context,
                         Calculation& run);

}  // namespace quasi::gw
