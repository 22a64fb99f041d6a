#pragma once

#include <vector>

#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

namespace quasi::gw {

/// Calculates the first order of the density in perturbations of one wave vector q, by sums over
/// all states in the plane waves of each k (docs/theory/gw.md 16.2). The change is
/// ∂ρ(r) e^{iq·r}, and ∂ρ has the period of the lattice.
/// @param perturbations  local and of one wave vector; their potential does not act on spins
/// @param field  insulating crystal without spin polarisation and without spinors
/// @param states  eigenstates of the Hamiltonian of `field` at any k
/// @return ∂ρ(G) on the plane waves of the density, electrons/Bohr, [perturbation][G]
std::vector<std::vector<Cplx>> density_response(const std::vector<Perturbation>& perturbations,
                                                const MeanField& field, const StatesAt& states);

}  // namespace quasi::gw
