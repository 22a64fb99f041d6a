#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/pair_products/pair_products_cuda.cuh"
#include "workers/gw/kernels/polarizability/polarizability_kernels.hpp"

namespace quasi::gw::cuda {

/// Starts the sums of some slices of χ(0) on one GPU with χ = 0, as
/// PolarizabilityKernels::start_slices() describes (docs/theory/gw.md 4.3).
/// @param n       edge of χ(0)
/// @param slices  rows of each slice
std::unique_ptr<SlicedChiSum> start_sliced_chi(SharedContext context,
                                               std::shared_ptr<PairProductTransforms> pair_products,
                                               std::int64_t n,
                                               const std::vector<ElementRows>& slices);

}  // namespace quasi::gw::cuda
