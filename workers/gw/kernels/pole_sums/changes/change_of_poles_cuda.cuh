#pragma once

#include <memory>

#include <cuda_runtime.h>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/polarizability/dielectric_inverse_cuda.cuh"
#include "workers/gw/kernels/pole_sums/changes/screened_elements.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/pole_response_cuda.cuh"

namespace quasi::gw::cuda {

/// A change in the memory of one device.
struct CudaPoleChange final : KeptPoleChange {
  CudaPoleChange(const Device& where, std::int64_t n_elements);
  ChangeOnDevice view() const { return {strength.data(), tau_per_ry.data()}; }
  Device device;
  quasi::cuda::DeviceBuffer<float2> strength;
  quasi::cuda::DeviceBuffer<float> tau_per_ry;
};

/// PoleSumKernels::change_of_poles on one device: one thread an element, which reads 40 bytes and
/// writes 12. See docs/theory/gw.md 9.3 for the equations.
PoleChange change_of_poles_cuda(const PoleModelOnDevice& own, const CudaInverse& inverse,
                                const ScreenedElements& elements, CudaContext& context);

/// Brings a change to a device: from the host, from another device, or not at all where it is
/// there.
/// @param n_elements  of the changes of the model @throws std::logic_error if the change has others
std::shared_ptr<const CudaPoleChange> change_on_device(const PoleChange& change,
                                                       std::int64_t n_elements,
                                                       CudaContext& context);

}  // namespace quasi::gw::cuda
