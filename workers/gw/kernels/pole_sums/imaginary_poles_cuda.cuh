#pragma once

#include <cuda_runtime.h>

#include "workers/gw/kernels/gw_kernels.hpp"

namespace quasi::gw::cuda {

/// GwKernels::sigma_diagonal_imaginary. One block a pair (l, n) and two energies goes through the
/// whole list of poles; its threads' sums are added in a fixed tree, pairs on the host in order:
/// same bits every time.
/// @param poles     on the device, [n_poles]
/// @param products  M on the device, [n_left][n_right][n_g]
void add_imaginary_poles_cuda(const ImaginaryPole* poles, std::int64_t n_poles,
                              const PoleRules& rules, const double2* products, std::int64_t n_g,
                              View<const double, 3> x_ry, View<const double, 1> occupation,
                              double weight, View<Cplx, 2> total, View<Cplx, 2> sx,
                              View<Cplx, 1> slope, cudaStream_t stream);

}  // namespace quasi::gw::cuda
