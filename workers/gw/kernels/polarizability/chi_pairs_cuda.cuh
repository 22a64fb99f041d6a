#pragma once

#include <cstdint>

#include "workers/gw/kernels/pair_products/pair_products_cuda.cuh"
#include "workers/gw/kernels/polarizability/polarizability_kernels.hpp"

namespace quasi::gw::cuda {

/// Streams, handles and memory of add_pairs_to_chi.
struct ChiPairsContext {
  PairProductTransforms& transforms;
  cudaStream_t transform_stream, product_stream;  ///< if they are equal, the two steps alternate
  cublasHandle_t blas;                            ///< on `product_stream`
  std::int64_t block_bytes;                       ///< size of one of the two blocks of M
  bool real;                                      ///< every M is real
};

/// Runs ChiSum::add_pairs: χ += Σ_p w_p M*_p M_p in blocks (docs/theory/gw.md 4). Transforms fill
/// one block of √|w| M while the product of the previous block runs. @param chi       in device
/// memory, [n_g][n_g], triangle G ≤ G' @param chi_real  in device memory, [n_g][n_g], used instead
/// of chi if context.real
ChiSum::PairsReport add_pairs_to_chi(const ChiPairsContext& context, const ChiSum::Pairs& pairs,
                                     double2* chi, double* chi_real);

}  // namespace quasi::gw::cuda
