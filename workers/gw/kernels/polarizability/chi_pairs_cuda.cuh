#pragma once

#include "workers/gw/kernels/pair_products/pair_products_cuda.cuh"

namespace quasi::gw::cuda {

/// What add_pairs_to_chi works with.
struct ChiPairsContext {
  PairProducts& pairs;
  cudaStream_t transforms, products;  ///< the same stream: in turn
  cublasHandle_t blas;                ///< of `products`
  std::int64_t block_bytes;           ///< of one of the two blocks of M
  bool real;                          ///< every M is real: see GwKernels::add_pairs_to_chi
};

/// χ += Σ_p w_p M*_p M_p in blocks: the transforms fill one block of √|w| M while the product of
/// the block before runs.
/// @param weight  host, [left][right];  head  host, [n_heads][left][right], or no data
/// @param chi     device, [n_g][n_g], triangle i ≤ j;  chi_real  the same, used instead where
/// context.real
GwKernels::PairsToChiReport add_pairs_to_chi_cuda(const ChiPairsContext& context, BandRange left,
                                                  BandRange right, const double* weight,
                                                  View<const Cplx, 3> head, double2* chi,
                                                  double* chi_real);

}  // namespace quasi::gw::cuda
