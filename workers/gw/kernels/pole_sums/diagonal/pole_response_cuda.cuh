#pragma once

#include <vector>

#include <cuda_runtime.h>

#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cuda.cuh"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw::cuda {

/// Holds the addresses of the elements of a change of a model in device memory. The first element
/// is that of the first row of a range.
struct ChangeOnDevice {
  const float2* strength = nullptr;      ///< δB, Bohr³ Ry
  const float* real_strength = nullptr;  ///< δB without imaginary parts, in place of `strength`
  const float* tau_per_ry = nullptr;     ///< δτ, 1/Ry; null: there is no change
  __device__ double2 strength_at(std::int64_t position) const {
    if (real_strength != nullptr) return {real_strength[position], 0.0};
    const float2 value = strength[position];
    return {value.x, value.y};
  }
};
/// Holds a model in device memory and some rows of its changes.
struct PoleChangesOnDevice {
  PoleModelOnDevice model;
  PoleRules rules;
  ElementRows rows;
  const ChangeOnDevice* change;  ///< in device memory, [n_changes]
  std::int64_t n_changes;
};

/// Tells which of the optional arrays of ResponseSums a caller reads.
struct WantedResponses {
  bool slope, own;
};
/// Holds in host memory the changes of Σ by changes of the pole model, for one block of bands.
/// They are not yet multiplied by ResponseTerms::weight.
struct ResponsesOnHost {
  std::vector<std::int64_t> group_end;  ///< ends of the groups of outer states
  std::vector<double> total, slope;     ///< [n_changes][n_groups]; `slope` may be empty
  std::vector<double> own;              ///< [n_segments][kOwnSums][n_groups]; may be empty
};

/// Computes the response of the diagonal Σ to changes of a model on a device, as
/// LoadedPoleChanges::add_response defines it (docs/theory/gw.md 9.3). A thread block owns a tile
/// of (G, G') and passes all rows (l, n) of a group of outer states through it, as
/// gpp_diagonal_cuda() does. The sums over bands of 2 × 2 elements stay in the registers of a
/// thread. After the last row of a segment they are multiplied with the model. After the last row
/// of the group they are multiplied with every change. Sums are added in fixed order, so that
/// repeated calls have equal bits.
///
/// Rows of equal energies form runs (response_rows.hpp), which share their factors. This table
/// counts the FP64 instructions of an element. The products are real where all states are. P and P'
/// are summed from f, f² and xf², with x = E − E_n.
///
/// | step | complex | real |
/// | --- | --- | --- |
/// | M M* of a row | 4 | 1 |
/// | f of a run, and the sum of its products | 6 | 5 |
/// | sums of f, f², xf² of a run | 8 | 5 |
/// | f and SX − X of an occupied run, and its sum | 7 more | 6 more |
/// | f at another energy, and its sum | 6 more | 5 more |
/// | slopes of responses | 3 more | 2 more |
///
/// A run of one empty band takes 18 instructions with complex products and 11 with real ones. The
/// vectors of one window and block share their energy, and so do the states of a multiplet.
/// @throws InvalidInput as make_response_rows() does
ResponsesOnHost pole_response_cuda(const PoleChangesOnDevice& changes,
                                   const ProductsOnDevice& products, const ResponseTerms& terms,
                                   const WantedResponses& wanted, cudaStream_t stream);

}  // namespace quasi::gw::cuda
