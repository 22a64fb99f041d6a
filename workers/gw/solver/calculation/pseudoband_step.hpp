#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {

/// Steps of a job with pseudobands (pseudobands.hpp).
///
/// Replaces states of `run.field` by the pseudobands of χ. @return the given states
/// @throws InvalidInput if sigma.band_max exceeds the protected bands
Wavefunctions replace_by_pseudobands(const Deck& deck, GwKernels& kernels, Calculation& run);

/// Adds to the plan the memory of the given states and how pseudobands replace them, and decides
/// whether Σ subtracts the known closed sum. @param devices  of this process
/// @throws InvalidInput if a multiplet of the outer states is not among the protected ones, or if
/// the deck asks for the closed sum and Σ has no plasmon poles
void add_pseudobands_to_plan(const Deck& deck, const Wavefunctions& given, int devices,
                             Calculation& run);

/// Replaces the pseudobands of χ in `run.field` by those of Σ, and adds the vectors of the
/// complement where Σ subtracts the closed sum. @param given  states that pseudobands replace
void take_pseudobands_of_sigma(Wavefunctions given, GwKernels& kernels, Calculation& run);

/// Lists the laws of Σ without values. Random vectors split multiplets, and their static CH is all
/// of CH except for noise.
/// @param why  reason, for the results
std::vector<SelfCheck> unexamined_states(const std::string& why);

}  // namespace quasi::gw
