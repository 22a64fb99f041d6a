#pragma once

#include <vector>

#include <cuda_runtime.h>

#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cuda.cuh"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw::cuda {

/// Elements of a change of a model in device memory, from the first row of its range on.
struct ChangeOnDevice {
  const float2* strength = nullptr;   ///< δB
  const float* tau_per_ry = nullptr;  ///< δτ
};
/// A model in device memory with some rows of its changes.
struct PoleChangesOnDevice {
  PoleModelOnDevice model;
  PoleRules rules;
  ElementRows rows;
  const ChangeOnDevice* change;  ///< in device memory, [n_changes]
  std::int64_t n_changes;
};

/// Sums of ResponseSums that are wanted.
struct WantedResponses {
  bool slope, own;
};
/// Responses of one block of products, without the weight of its terms.
struct ResponsesOnHost {
  std::vector<double> total, slope;  ///< [n_changes][n_left]; the slope is empty if not wanted
  std::vector<double> own;           ///< [n_segments][kOwnSums][n_left]; empty if not wanted
};

/// LoadedPoleChanges::add_response on a device. A thread block owns a tile of (G, G') and passes
/// all rows (l, n) of an outer state through it, as gpp_diagonal_cuda() does. The sums over bands
/// of 2 × 2 elements stay in the registers of a thread. After the last row of a segment they are
/// multiplied with the model, and after that of the state with every change. Sums are added in
/// fixed order: same bits every time.
///
/// FP64 instructions of an element and a row. The products are real where all states are.
///
/// | step | complex | real |
/// | --- | --- | --- |
/// | M M*, and its sum | 6 | 2 |
/// | f | 4 | 4 |
/// | sums of f, f², xf² | 8 | 5 |
/// | f and SX − X of an occupied band, and its sum | 7 more | 6 more |
/// | f at another energy, and its sum | 6 more | 5 more |
/// | slopes of responses | 3 more | 2 more |
///
/// The total Σ, its slope, SX − X, the closed sum and all responses of an empty band take 18 or
/// 11. See docs/theory/gw.md 9.3 for the equations.
ResponsesOnHost pole_response_cuda(const PoleChangesOnDevice& changes,
                                   const ProductsOnDevice& products, const ResponseTerms& terms,
                                   const WantedResponses& wanted, cudaStream_t stream);

}  // namespace quasi::gw::cuda
