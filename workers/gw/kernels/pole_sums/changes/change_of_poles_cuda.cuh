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
  Device device;
  quasi::cuda::DeviceBuffer<float2> strength;
  quasi::cuda::DeviceBuffer<float> tau_per_ry;
};

/// PoleSumKernels::change_of_poles on one device: one thread an element, which reads 40 bytes and
/// writes 12. See docs/theory/gw.md 9.3 for the equations.
PoleChange change_of_poles_cuda(const PoleModelOnDevice& own, const CudaInverse& inverse,
                                const ScreenedElements& elements, CudaContext& context);

/// Rows of a change on a device, and the object that holds their memory.
struct HeldChange {
  std::shared_ptr<const CudaPoleChange> owner;
  ChangeOnDevice view;
};
/// Brings rows of a change to a device: from the host, from another device, or not at all where
/// they are there. @throws std::logic_error if the change has other elements than the model
HeldChange change_on_device(const PoleChange& change, const PoleModelOnDevice& model,
                            const ElementRows& rows, CudaContext& context);

}  // namespace quasi::gw::cuda
