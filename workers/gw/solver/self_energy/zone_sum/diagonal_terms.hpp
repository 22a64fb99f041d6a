#pragma once

#include "workers/gw/kernels/pole_sums/changes/closed_sums.hpp"
#include "workers/gw/solver/self_energy/sigma_subspace.hpp"
#include "workers/gw/solver/self_energy/zone_sum/outer_products.hpp"

// Terms of the diagonal Σ, each summed over one block of inner bands at one q.
namespace quasi::gw {

/// Adds the bare exchange −w Σ_n Σ_G |M_ln(G)|² v̄(G) of a block of occupied bands to `sum`.
/// @param coulomb  v̄(q+G) of the plane waves of `products`
void add_exchange(const std::vector<double>& coulomb, const BandBlock& block,
                  const PairBlock& products, SelfEnergyAtK& sum);

/// Adds the correlation of a block by plasmon poles (docs/theory/gw.md 6.2), dΣ/dE included where
/// the options ask for it.
void add_plasmon_poles(const ScreeningOnDevice& screening, const BandBlock& block,
                       const PairBlock& products, const SigmaOptions& options, SelfEnergyAtK& sum);

/// Adds static CH by the band sum and, for COHSEX, SX − X (docs/theory/gw.md 6.1).
/// @param static_w  I_GG' v̄(G') at ω = 0, [n_g][n_g]
void add_static(const UnsetVector<Cplx>& static_w, const BandBlock& block,
                const PairBlock& products, const SigmaOptions& options, SelfEnergyAtK& sum);

/// Subtracts w Σ_n M_ln W M†_ln of a block from sum[l]. @param matrix  W, [n_g][n_g]
void subtract_forms(const UnsetVector<Cplx>& matrix, const BandBlock& block,
                    const PairBlock& products, std::vector<Cplx>& sum);

/// Subtracts the closed sum w Σ_n M_ln W* M†_ln of a block from sum[l] (docs/theory/gw.md 9.4).
void subtract_closed_sum(const LoadedPoleModel& poles, double x_ry, const BandBlock& block,
                         const PairBlock& products, std::vector<Cplx>& sum);

/// Returns Σ_D w(D) ρ_ll(D) of the outer states at a member S q of a star, where w(D) of q is
/// given in a box: S takes D to S D with the phase e^{−i(SD)·τ}; [n_l].
std::vector<Cplx> known_closed_sums(const ChargeTable& charge, const SymmetryOperation& operation,
                                    const DifferenceBox& box, const std::vector<Cplx>& sums);

}  // namespace quasi::gw
