#pragma once

#include <cstdint>
#include <vector>

#include "workers/backend/view.hpp"
#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"

// Sums of the derivative of Σ at one q, on the processor. Begin with sigma_derivative.hpp.
namespace quasi::gw {

/// Pair products on both sides of the perturbation. A perturbation of wave vector p couples n at
/// k − q with n' at k + p − q.
struct CoupledProducts {
  CoupledBands bra;           ///< n'
  CoupledBands ket;           ///< n
  View<const Cplx, 3> left;   ///< M_ln'(G) of the outer states l at k + p, [n_l][n_bra][n_g]
  View<const Cplx, 3> right;  ///< M_mn(G) of the outer states m at k, [n_m][n_ket][n_g]
};

/// First order of one perturbation.
struct Coupling {
  std::vector<Cplx> elements;  ///< V_n'n = ⟨n'|∂V|n⟩, Ry/Bohr, [n_bra][n_ket]
};

/// Energies at which the first order of Σ_c is wanted, common to all (l, m), and the weight w of q.
struct DerivativeTerms {
  std::vector<double> energies_ry;
  double weight = 1.0;
};

/// Derivatives of one perturbation, Ry/Bohr.
struct DerivativeSums {
  std::vector<Cplx> correlation;  ///< [n_energies][n_l][n_m]
  /// The correlation without the shifts of energies: pairs of one multiplet are left out
  /// (docs/theory/gw.md 14.3). [n_energies][n_l][n_m]
  std::vector<Cplx> fixed_energies;
  std::vector<Cplx> exchange;  ///< [n_l][n_m]
};

/// Adds the first order of Σ_c at one q to the sums of each perturbation
/// (docs/theory/gw.md 14.2):
///
///   ∂Σ_lm(E) += w Σ_n'n V_n'n Σ_GG' M_ln'(G) K_n'n,GG' M*_mn(G'),
///   K = (F_n − F_n')/(E_n − E_n') v̄(G'),
///
/// with F of the plasmon-pole model at E − E_n and E − E_n'.
void add_correlation_derivative(const PlasmonPoleView& model, const PoleRules& rules,
                                const CoupledProducts& products,
                                const std::vector<Coupling>& couplings,
                                const DerivativeTerms& terms, std::vector<DerivativeSums>& sums);

/// Adds the first order of the exchange: K = −(f_n − f_n')/(E_n − E_n') v̄(G) δ_GG'. Only pairs of
/// an occupied and an empty state contribute.
/// @param coulomb  v̄(q+G), [n_g]
void add_exchange_derivative(const std::vector<double>& coulomb, const CoupledProducts& products,
                             const std::vector<Coupling>& couplings, double weight,
                             std::vector<DerivativeSums>& sums);

}  // namespace quasi::gw
