#pragma once

#include <cuda_runtime.h>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/polarizability/dielectric_inverse_cuda.cuh"
#include "workers/gw/kernels/pole_sums/changes/screened_elements.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cuda.cuh"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw::cuda {

/// PoleSumKernels::change_of_poles on one device: one thread an element, which reads 40 bytes and
/// writes 12. See docs/theory/gw.md 9.3 for the equations.
PoleChange change_of_poles_cuda(const PoleModelOnDevice& own, const CudaInverse& inverse,
                                const ScreenedElements& elements, CudaContext& context);

}  // namespace quasi::gw::cuda
