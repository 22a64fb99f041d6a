#pragma once

#include <memory>

#include <cuda_runtime.h>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/polarizability/dielectric_inverse_cuda.cuh"
#include "workers/gw/kernels/pole_sums/changes/screened_elements.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/pole_response_cuda.cuh"

namespace quasi::gw::cuda {

/// Holds a change of a plasmon-pole model in the memory of one device. Its arrays are δB (Bohr³
/// Ry) and δτ (1/Ry), the changes of the two numbers that the model has for each pair (G, G').
struct CudaPoleChange final : KeptPoleChange {
  /// Allocates the arrays of `n_elements` elements in the memory of the device.
  /// @param real  δB has no imaginary parts
  CudaPoleChange(const Device& where, std::int64_t n_elements, bool real);
  Device device;
  quasi::cuda::DeviceBuffer<float2> strength;      ///< empty if δB is real
  quasi::cuda::DeviceBuffer<float> real_strength;  ///< empty unless δB is real
  quasi::cuda::DeviceBuffer<float> tau_per_ry;
  bool real() const { return real_strength.size() > 0; }
  /// Returns the addresses of the elements from the one of number `first` on.
  ChangeOnDevice view(std::int64_t first) const {
    return {.strength = real() ? nullptr : strength.data() + first,
            .real_strength = real() ? real_strength.data() + first : nullptr,
            .tau_per_ry = tau_per_ry.data() + first};
  }
};

/// Returns the change of a model from the poles `own` to those that follow from ε̃⁻¹ on one
/// device (PoleSumKernels::change_of_poles, docs/theory/gw.md 9.3). A thread makes one element. It
/// reads 40 bytes and writes 12. With a packed model and a real ε̃⁻¹ it reads 24 and writes 8.
PoleChange change_of_poles_cuda(const PoleModelOnDevice& own, const CudaInverse& inverse,
                                const ScreenedElements& elements, CudaContext& context);

/// Holds rows of a change on a device, and the object that owns their memory.
struct HeldChange {
  std::shared_ptr<const CudaPoleChange> owner;
  ChangeOnDevice view;
};
/// Brings rows of a change to a device, from the host or from another device. Rows that are on the
/// device already are not copied.
/// @throws std::logic_error if the change and the model have different numbers of elements
HeldChange change_on_device(const PoleChange& change, const PoleModelOnDevice& model,
                            const ElementRows& rows, CudaContext& context);

}  // namespace quasi::gw::cuda
