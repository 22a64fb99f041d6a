#pragma once

#include <cstdint>
#include <functional>

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

/// Refers to one block of products √|w| M of pairs in device memory. A row is a pair.
struct WeightedBlock {
  const char* rows;  ///< [n_rows][n_g] of double if every M is real, else of double2
  std::int64_t n_rows;
  std::int64_t n_g;
  double sign;  ///< sign of the weights w of the block, 1 or −1
  const double* real() const { return reinterpret_cast<const double*>(rows); }
  const double2* complex() const { return reinterpret_cast<const double2*>(rows); }
};

/// Runs PairSum::add_pairs: χ += Σ_p w_p M*_p M_p in blocks (docs/theory/gw.md 4). Transforms
/// fill one block of √|w| M while the product of the previous block runs.
/// @param add  starts the products of one block on context.product_stream
PairSum::PairsReport add_pairs_to_chi(const ChiPairsContext& context, const PairSum::Pairs& pairs,
                                      const std::function<void(const WeightedBlock&)>& add);

}  // namespace quasi::gw::cuda
