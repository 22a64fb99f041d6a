#pragma once

#include <cstdint>

#include "workers/gw/kernels/dense/products_cuda.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cuda.cuh"
#include "workers/gw/kernels/pole_sums/offdiagonal/offdiagonal_plan.hpp"

namespace quasi::gw::cuda {

/// The plasmon-pole model and pair products of an off-diagonal sum, in device memory. If the two
/// sets differ, the model is not folded.
struct OffDiagonalInput {
  PoleModelOnDevice model;
  PoleRules rules;
  ProductsOnDevice products;  ///< M of the bra
  ProductsOnDevice ket;       ///< M' of the ket with the same inner bands; often M itself
};

/// Streams and memory of one sum. Matrices P are made on one stream while products run on the
/// other.
struct OffDiagonalWorkspace {
  cudaStream_t products;
  cudaStream_t preparation;
  cublasHandle_t blas;  ///< on `products`
  std::int64_t bytes;   ///< device memory for P and T
};

/// LoadedPoleModel::add_offdiagonal on a device (docs/theory/gw.md 7). There are two buffers
/// of P for several energies each: while the products of one run, the other is made. T = M P of all
/// energies of a run of (n, E) is kept, so that the second product is one batch over energies.
///
/// @param plan  of plan_offdiagonal; the separable pairs are fitted while the device works on the
///   direct ones
OffDiagonalReport add_gpp_offdiagonal_cuda(const OffDiagonalInput& input,
                                           const OffDiagonalTerms& terms,
                                           const OffDiagonalOptions& options,
                                           const OffDiagonalWorkspace& workspace,
                                           OffDiagonalPlan& plan, View<Cplx, 3> sigma);

}  // namespace quasi::gw::cuda
