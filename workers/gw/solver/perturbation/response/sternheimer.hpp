#pragma once

#include <memory>
#include <span>
#include <vector>

#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

// This folder completes first orders of Σ by the states beyond its bands. Begin with
// terms_beyond_bands.hpp, which uses the equation of this file.
namespace quasi::gw {

/// Describes the Hamiltonian of the crystal at rest for first orders of states by linear
/// equations (docs/theory/gw.md 14.10).
struct StateResponse {
  PotentialElements potential;  ///< V(G) of H = |k+G|² + V(G − G'), Ry
  double residual = 1e-11;      ///< largest ‖b − A x‖/‖b‖ of a solution
};

/// Applies a local potential that has the period of the lattice to some states:
///
///   (∂V ψ_n)(G) = Σ_ΔG ∂V(ΔG) c_n(G − ΔG), [kets.size()][n_pw]
std::vector<Cplx> applied_potential(const PotentialElements& potential, const WavesAtPoint& states,
                                    BandRange kets);

/// Solves the Sternheimer equation at one k-point for the part of the first order of its lowest
/// states that lies outside of the space of these states (docs/theory/gw.md 14.10):
///
///   (H − E_n + αP) ψ'_n = −(1 − P) ∂V ψ_n,   P = Σ_m |m⟩⟨m|
///
/// by conjugate gradients with H as an operator. The operator is positive definite, because the
/// states are the lowest ones. Bits depend on the list of right sides alone.
class SternheimerEquation {
 public:
  /// Keeps references to the states and the kernels.
  /// @param parts  of H on the plane waves of the states
  /// @param energy_ry  E_n, ascending, one for each state
  /// @param residual  largest ‖b − A x‖/‖b‖ of a solution
  SternheimerEquation(HamiltonianParts parts, const WavesAtPoint& states,
                      std::vector<double> energy_ry, double residual, GwKernels& kernels);
  /// Returns ψ'_n of some perturbations and kets n, 1/Bohr, [n_p][kets.size()][n_pw].
  /// @param potentials  ∂V(G) of each perturbation, Ry/Bohr
  /// @throws NotConverged if a state outside of P has nearly the energy of n, or the residual
  /// stays too large
  std::vector<Cplx> solve(std::span<const PotentialElements* const> potentials,
                          BandRange kets) const;

 private:
  const WavesAtPoint& states_;
  std::vector<double> energy_ry_;
  std::vector<double> kinetic_ry_;  ///< |k+G|², [n_pw]
  double residual_;
  double shift_ry_;  ///< α
  std::unique_ptr<const HamiltonianOperator> h_;
  std::unique_ptr<LoadedHamiltonian> loaded_;
};

}  // namespace quasi::gw
