#pragma once

#include <vector>

#include "workers/gw/kernels/pole_sums/first_order_kernels.hpp"
#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"

namespace quasi::gw {

/// Pair products in host memory, [n_l][n_bra][n_g] and [n_m][n_ket][n_g].
struct FirstOrderArrays {
  View<const Cplx, 3> bra, ket;
};

/// LoadedPoleModel::add_first_order on the CPU (docs/theory/gw.md 14.2). Threads take one ket each,
/// and their terms are added in order, so that bits do not depend on the number of threads.
void add_first_order_cpu(const PlasmonPoleView& model, const PoleRules& rules,
                         const FirstOrderArrays& products, const FirstOrderPairs& pairs,
                         const FirstOrderTerms& terms, const FirstOrderSums& sums);

/// PoleSumKernels::add_first_order_exchange on the CPU.
void add_first_order_exchange_cpu(const FirstOrderArrays& products, View<const double, 1> coulomb,
                                  const FirstOrderPairs& pairs, View<Cplx, 3> sum);

}  // namespace quasi::gw
