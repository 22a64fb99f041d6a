#pragma once

#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {

/// Adds −k and its states c_{−k}(G) = c*_k(−G) for every k of a list that time reversal has
/// reduced, that is where the operations of the crystal alone do not complete the grid. Weights
/// become those of the stars. A list that is complete, or that time reversal does not complete,
/// stays as it is.
/// @param expected  number of points of the grid
/// @returns the number of points added
int complete_by_time_reversal(Wavefunctions& waves, std::int64_t expected);

/// Checks that occupied bands have equal energies, to 1e-4 Ry, at k-points of the list which time
/// reversal and an operation of the crystal map onto each other.
/// @throws InvalidInput with band, k-points and both energies
void check_time_reversal(const Wavefunctions& waves, const BrillouinZone& zone,
                         const std::vector<int>& n_occupied);

/// Checks the occupied energies of WFNq against those of WFN. The velocity of a state of kinetic
/// energy T is at most 2 √T, so that E(k + q₀) − E(k) is at most 2 √T |q₀|. Ten times that bound
/// and 1e-3 Ry leave room for the non-local potential and for the sphere of plane waves, which
/// changes with q₀: by 4e-3 Ry for silicon at a cut-off of 5 Ry.
/// @throws InvalidInput with band, k-point, difference and limit
void check_shifted_energies(const MeanField& field);

}  // namespace quasi::gw
