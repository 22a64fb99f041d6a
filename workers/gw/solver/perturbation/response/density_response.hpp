#pragma once

#include <vector>

#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

namespace quasi::gw {

/// Holds first orders of the density with one wave vector q.
struct DensityResponse {
  std::vector<IVec3> g;  ///< plane waves with |q+G|² below the cut-off of the density
  std::vector<std::vector<Cplx>> change;  ///< ∂ρ(G), electrons/Bohr, [perturbation][G]
};

/// Calculates the first order of the density in perturbations of one wave vector q, by sums over
/// all states in the plane waves of each k (docs/theory/gw.md 16.2). The change is
/// ∂ρ(r) e^{iq·r}, and ∂ρ has the period of the lattice.
/// @param perturbations  local and of one wave vector; their potential does not act on spins
/// @param field  insulating crystal without spin polarisation and without spinors
/// @param states  eigenstates of the Hamiltonian of `field` at any k
DensityResponse density_response(const std::vector<Perturbation>& perturbations,
                                 const MeanField& field, const StatesAt& states);

}  // namespace quasi::gw
