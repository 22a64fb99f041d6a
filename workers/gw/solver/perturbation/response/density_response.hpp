#pragma once

#include <vector>

#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

namespace quasi::gw {

/// Holds the changes of the density with perturbations of one wave vector q.
struct DensityResponse {
  std::vector<IVec3> g;  ///< plane waves G with |q+G|² below the cut-off of the density
  /// ∂ρ(G), electrons per cell and Bohr of displacement, [perturbation][G].
  std::vector<std::vector<Cplx>> change;
};

/// Calculates the change ∂ρ(r) e^{iq·r} of the density with perturbations of one wave vector q,
/// to first order. ∂ρ has the period of the lattice. The first order of each occupied state is a
/// sum over all empty states in its plane waves (docs/theory/gw.md 16.2).
/// @param perturbations  perturbations of one wave vector; they must not act on spins
/// @param field   crystal with a gap, without spin polarisation and without spinors
/// @param states  function that returns eigenstates of the Hamiltonian of `field` at any k
DensityResponse density_response(const std::vector<Perturbation>& perturbations,
                                 const MeanField& field, const StatesAt& states);

}  // namespace quasi::gw
