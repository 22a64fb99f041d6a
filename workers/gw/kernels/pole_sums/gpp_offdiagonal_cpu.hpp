#pragma once

#include "workers/gw/kernels/gw_kernels.hpp"

namespace quasi::gw {

/// GwKernels::sigma_offdiagonal by BLAS: P or a separable matrix is made in parallel, products are
/// the library's.
/// @param folded    the model is Hermitian: P's upper triangle alone is made and multiplied
/// @param products  M, [n_left][n_right][n_g]
/// @throws InvalidInput for products that are not native.
GwKernels::OffDiagonalReport add_gpp_offdiagonal_cpu(
    const PlasmonPoleView& model, bool folded, const PoleRules& rules, View<const Cplx, 3> products,
    View<const double, 1> energies_ry, View<const double, 1> band_ry,
    View<const double, 1> occupation, double weight, const GwKernels::OffDiagonalOptions& options,
    View<Cplx, 3> sigma);

}  // namespace quasi::gw
