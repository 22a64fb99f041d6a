#pragma once

#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"

namespace quasi::gw {

/// Pair products on both sides of a full matrix, with the same inner bands. They may be one array.
struct ProductSets {
  View<const Cplx, 3> bra;  ///< [n_left][n_right][n_g]
  View<const Cplx, 3> ket;  ///< [n_m][n_right][n_g]
};

/// Adds the full-matrix sum on the CPU (LoadedPoleModel::add_offdiagonal, docs/theory/gw.md 7).
/// Threads make P or a separable matrix, and BLAS multiplies it. For a Hermitian model only the
/// upper triangle of P is made and multiplied.
/// @param model  not marked as Hermitian if the sets differ
/// @param sets   M on both sides
/// @throws InvalidInput for products that are not native
OffDiagonalReport add_gpp_offdiagonal_cpu(const PlasmonPoleView& model, const PoleRules& rules,
                                          const ProductSets& sets, const OffDiagonalTerms& terms,
                                          const OffDiagonalOptions& options, View<Cplx, 3> sigma);

}  // namespace quasi::gw
