#pragma once

#include <vector>

#include "workers/gw/kernels/pole_sums/first_order_kernels.hpp"
#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"

namespace quasi::gw {

/// Holds views of pair products in host memory: M_ln'(G) of the bra [n_l][n_bra][n_g] and M_mn(G)
/// of the ket [n_m][n_ket][n_g].
struct FirstOrderArrays {
  View<const Cplx, 3> bra, ket;
};

/// Adds the first order of Σ_c to `sums` on the CPU, Ry/Bohr, as LoadedPoleModel::add_first_order
/// defines it (docs/theory/gw.md 14.2). Threads take one ket each. Their terms are added in order,
/// so that bits do not depend on the number of threads.
void add_first_order_cpu(const PlasmonPoleView& model, const PoleRules& rules,
                         const FirstOrderArrays& products, const FirstOrderPairs& pairs,
                         const FirstOrderTerms& terms, const FirstOrderSums& sums);

/// Adds the first order of the exchange on the CPU, as PoleSumKernels::add_first_order_exchange
/// defines it.
/// @param coulomb  v̄(q+G), [n_g]
/// @param sum  Ry/Bohr, [n_p][n_l][n_m]
void add_first_order_exchange_cpu(const FirstOrderArrays& products, View<const double, 1> coulomb,
                                  const FirstOrderPairs& pairs, View<Cplx, 3> sum);

}  // namespace quasi::gw
