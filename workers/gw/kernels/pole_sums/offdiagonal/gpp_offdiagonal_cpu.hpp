#pragma once

#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"

namespace quasi::gw {

/// LoadedPoleModel::add_offdiagonal by BLAS (docs/theory/gw.md 7). P or a separable matrix
/// is made in parallel; products are the library's. Of a Hermitian model P's upper triangle alone
/// is made and multiplied.
/// @param products  M, [n_left][n_right][n_g]
/// @throws InvalidInput for products that are not native
OffDiagonalReport add_gpp_offdiagonal_cpu(const PlasmonPoleView& model, const PoleRules& rules,
                                          View<const Cplx, 3> products,
                                          const OffDiagonalTerms& terms,
                                          const OffDiagonalOptions& options, View<Cplx, 3> sigma);

}  // namespace quasi::gw
