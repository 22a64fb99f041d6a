#pragma once

#include "workers/gw/kernels/dense/products_cuda.cuh"
#include "workers/gw/kernels/pole_sums/gpp_diagonal_cuda.cuh"
#include "workers/gw/kernels/pole_sums/offdiagonal_plan.hpp"

namespace quasi::gw::cuda {

/// What the off-diagonal sum works on, all in device memory.
struct OffDiagonalInput {
  PoleModelOnDevice model;
  PoleRules rules;
  const double2* products;  ///< M, [n_left][n_right][n_g]
  std::int64_t n_left, n_right;
};

/// Streams of one sum: matrices P are made on one while products run on the other.
struct OffDiagonalStreams {
  cudaStream_t products;
  cudaStream_t preparation;
  cublasHandle_t blas;  ///< on `products`
};

/// GwKernels::sigma_offdiagonal. Two buffers of P, several energies each: while the products of one
/// run, the other is made. T = M P of all energies of a run of (n, E) is kept, so that the second
/// product is one batch over energies.
///
/// @param plan             of plan_offdiagonal; the separable pairs are fitted while the device
/// works on the direct ones
/// @param workspace_bytes  for P and T
GwKernels::OffDiagonalReport add_gpp_offdiagonal_cuda(
    const OffDiagonalInput& input, OffDiagonalPlan& plan, View<const double, 1> energies_ry,
    View<const double, 1> band_ry, View<const double, 1> occupation, double weight,
    const GwKernels::OffDiagonalOptions& options, std::int64_t workspace_bytes,
    const OffDiagonalStreams& streams, View<Cplx, 3> sigma);

}  // namespace quasi::gw::cuda
