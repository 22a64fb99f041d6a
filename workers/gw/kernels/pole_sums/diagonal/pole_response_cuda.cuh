#pragma once

#include <vector>

#include <cuda_runtime.h>

#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cuda.cuh"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw::cuda {

/// A model in device memory with its changes, one after another.
struct PoleChangesOnDevice {
  PoleModelOnDevice model;
  PoleRules rules;
  const float2* strength;   ///< δB, [n_changes][n_elements]
  const float* tau_per_ry;  ///< δτ, [n_changes][n_elements]
  std::int64_t n_changes, n_elements;
};

/// Responses of one block of products, without the weight of its terms.
struct ResponsesOnHost {
  std::vector<double> total, slope;  ///< [n_changes][n_left]; the slope is empty if not wanted
};

/// LoadedPoleChanges::add_response on a device. A thread block owns a tile of (G, G') and passes
/// all rows (l, n) of an outer state through it, as gpp_diagonal_cuda() does. P and P' of 2 × 2
/// elements stay in the registers of a thread. After the last row of the state they are multiplied
/// with every change. Sums are added in fixed order: same bits every time.
///
/// FP64 instructions of an element and a row: 4 for M M*, 4 for f, 3 for ∂f/∂τ, 4 for the
/// sums, 2 with a closed sum and 7 with the slope. See docs/theory/gw.md 9.3 for the equations.
ResponsesOnHost pole_response_cuda(const PoleChangesOnDevice& changes,
                                   const ProductsOnDevice& products, const ResponseTerms& terms,
                                   bool with_slope, cudaStream_t stream);

}  // namespace quasi::gw::cuda
