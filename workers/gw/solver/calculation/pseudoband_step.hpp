#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {

/// Steps of a job with pseudobands (pseudobands.hpp).
///
/// Replaces states of `run.field` by the pseudobands of χ. @return the given states
/// @throws InvalidInput if sigma.band_max exceeds the protected bands
Wavefunctions replace_by_pseudobands(const Deck& deck, Calculation& run);

/// Notes in the plan how pseudobands replace states.
/// @throws InvalidInput if a multiplet of the outer states is not among the protected ones
void note_pseudobands(const Deck& deck, Calculation& run);

/// Returns the bytes of the coefficients of all states.
std::int64_t bytes_of(const Wavefunctions& waves);

/// Lists the laws of Σ without values. Random vectors split multiplets, and their static CH is all
/// of CH except for noise.
std::vector<SelfCheck> unexamined_states();

}  // namespace quasi::gw
