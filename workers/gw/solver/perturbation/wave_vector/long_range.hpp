#pragma once

#include <vector>

#include "workers/gw/solver/perturbation/displacement_elements.hpp"

namespace quasi::gw {

/// Calculates the long-range part ∂V^L of ∂V, the first order of the potential when ions move
/// as a wave with wave vector q. In a polar crystal displaced ions are dipoles, and ∂V^L is the
/// potential of these dipoles [verdi2015] (docs/theory/gw.md 14.14). With K = q + G:
///
///   ∂V^L(K) = i (8π/Ω) (K·Z*_a·e)/(K·ε∞·K) exp(−K·ε∞·K/4α) e^{−iK·τ_a},
///   Ry/Bohr
///
/// Z*_a is the Born charge of atom a, e the direction of its displacement and τ_a its position.
/// ε∞ is the dielectric tensor of the electrons and Ω the volume of the cell. α is (2π/a)²
/// with the lattice constant a of the header. The difference ∂V − ∂V^L is smooth in q.
/// @param request  request with the Born charges and ε∞
/// @param list     displacements of the job
/// @param q        reduced, not a reciprocal vector
/// @return one local perturbation for each displacement; empty without Born charges
std::vector<Perturbation> long_range_parts(const PerturbationRequest& request,
                                           const std::vector<Displacement>& list,
                                           const Crystal& crystal, const Vec3& q);

/// Checks the Born charges of a request against the crystal of the job.
/// @throws InvalidInput if their number is not that of the atoms, or if an element of their sum
/// exceeds 0.1 e. The sum is 0 in a neutral cell.
void check_born_charges(const PerturbationRequest& request, const Crystal& crystal);

}  // namespace quasi::gw
