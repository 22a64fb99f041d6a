#pragma once

#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"

namespace quasi::gw {

/// Adds the full-matrix sum on the CPU (LoadedPoleModel::add_offdiagonal, docs/theory/gw.md 7).
/// Threads make P or a separable matrix, and BLAS multiplies it. For a Hermitian model only the
/// upper triangle of P is made and multiplied.
/// @param products  M, [n_left][n_right][n_g]
/// @throws InvalidInput for products that are not native
OffDiagonalReport add_gpp_offdiagonal_cpu(const PlasmonPoleView& model, const PoleRules& rules,
                                          View<const Cplx, 3> products,
                                          const OffDiagonalTerms& terms,
                                          const OffDiagonalOptions& options, View<Cplx, 3> sigma);

}  // namespace quasi::gw
