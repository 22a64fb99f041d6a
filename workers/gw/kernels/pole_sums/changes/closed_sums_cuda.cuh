#pragma once

#include <vector>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/pole_sums/changes/closed_sums.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/pole_response_cuda.cuh"

namespace quasi::gw::cuda {

/// LoadedPoleChanges::sums_by_difference on one device: a thread block sums all elements of one
/// D in fixed order: same bits every time. See docs/theory/gw.md 9.3, 9.4 for the equations.
std::vector<Cplx> sums_by_difference_cuda(const PoleChangesOnDevice& changes, std::int64_t change,
                                          double x_ry, const DifferenceBox& box,
                                          const CudaContext& context);

}  // namespace quasi::gw::cuda
