#pragma once

#include <memory>
#include <span>
#include <vector>

#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"
#include "workers/gw/solver/mean_field/spinors/spin_orbit.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

// This folder completes first orders of Σ by the states beyond its bands. Begin with
// terms_beyond_bands.hpp, which uses the equation of this file.
namespace quasi::gw {

/// Describes the Hamiltonian of the crystal at rest for first orders of states by linear
/// equations (docs/theory/gw.md 14.10).
struct StateResponse {
  PotentialElements potential;  ///< V(G) of H = |k+G|² + V(G − G'), Ry
  double residual = 1e-11;      ///< largest ‖b − A x‖/‖b‖ of a solution
  /// Spin–orbit term of H; null: the states have one component.
  std::shared_ptr<const SpinOrbitTerm> spin_orbit = {};

  /// Makes the parts of H on the plane waves `g` at one k. @param k  reduced
  HamiltonianParts parts(const Crystal& crystal, const Vec3& k, const std::vector<IVec3>& g) const;
};

/// Applies a local potential that has the period of the lattice to each component of some states:
///
///   (∂V ψ_n)(G) = Σ_ΔG ∂V(ΔG) c_n(G − ΔG), [kets.size()][n]
///
/// n is the number of coefficients of a state, here and below.
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
  /// Returns ψ'_n of some perturbations and kets n, 1/Bohr, [n_p][kets.size()][n].
  /// @param applied  ∂V ψ_n of each perturbation, Ry/Bohr, [n_p][kets.size()][n]
  /// @throws NotConverged if a state outside of P has nearly the energy of n, or the residual
  /// stays too large
  std::vector<Cplx> solve(std::vector<Cplx> applied, BandRange kets) const;
  /// Returns ψ'_n of local potentials ∂V(G). @throws NotConverged as the function above does
  std::vector<Cplx> solve(std::span<const PotentialElements* const> potentials,
                          BandRange kets) const;

 private:
  const WavesAtPoint& states_;
  std::vector<double> energy_ry_;
  std::vector<double> kinetic_ry_;  ///< |k+G|², [n]
  double residual_;
  double shift_ry_;  ///< α
  std::unique_ptr<const HamiltonianOperator> h_;
  std::unique_ptr<LoadedHamiltonian> loaded_;
};

}  // namespace quasi::gw
