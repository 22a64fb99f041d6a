#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "workers/backend/device/check_cuda.cuh"
#include "workers/backend/device/device.hpp"

namespace quasi::gw::cuda {

using quasi::cuda::check;

/// Lets the device in use read the memory of the other device directly (NVLink, PCIe). Where the
/// hardware does not allow it, CUDA copies by way of the host, and peer_copy() works all the same.
inline void allow_peer_access(const Device& here, const Device& there) {
  int possible = 0;
  check(cudaDeviceCanAccessPeer(&possible, here.index, there.index),
        "asking whether one device can read the memory of another");
  if (possible == 0) return;
  const cudaError_t status = cudaDeviceEnablePeerAccess(there.index, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();  // not an error, but kept as the last one
  else
    check(status, "allowing a device to read the memory of another");
}

/// An address in the memory of one device.
template <typename Pointer>
struct DeviceAddress {
  Pointer data;
  const Device& device;
};

/// Copies bytes from any device to the device in use, on a stream of the latter.
/// @param what  names the data in error messages
/// @throws DeviceLost if CUDA refuses the copy
inline void peer_copy(const DeviceAddress<void*>& to, const DeviceAddress<const void*>& from,
                      std::int64_t bytes, cudaStream_t stream, const char* what) {
  const auto size = static_cast<std::size_t>(bytes);
  if (to.device.index == from.device.index) {
    check(cudaMemcpyAsync(to.data, from.data, size, cudaMemcpyDeviceToDevice, stream), what);
    return;
  }
  allow_peer_access(to.device, from.device);
  check(cudaMemcpyPeerAsync(to.data, to.device.index, from.data, from.device.index, size, stream),
        what);
}

}  // namespace quasi::gw::cuda
