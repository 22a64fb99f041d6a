#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "workers/backend/device/check_cuda.cuh"
#include "workers/backend/device/device.hpp"

namespace quasi::gw::cuda {

using quasi::cuda::check;

/// Lets the device in use read the other one's memory itself (NVLink, PCIe); where it cannot,
/// CUDA's copies between the two go by way of the host, which peer_copy does not care about.
inline void allow_peer_access(const Device& here, const Device& there) {
  int possible = 0;
  check(cudaDeviceCanAccessPeer(&possible, here.index, there.index),
        "looking for a way between devices");
  if (possible == 0) return;
  const cudaError_t status = cudaDeviceEnablePeerAccess(there.index, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();  // not an error, but kept as the last one
  else
    check(status, "opening the way between devices");
}

/// A copy from another device, or the same one, on a stream of the device in use.
inline void peer_copy(void* to, const Device& here, const void* from, const Device& there,
                      std::int64_t bytes, cudaStream_t stream, const char* what) {
  if (here.index == there.index) {
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                          stream),
          what);
    return;
  }
  allow_peer_access(here, there);
  check(cudaMemcpyPeerAsync(to, here.index, from, there.index, static_cast<std::size_t>(bytes),
                            stream),
        what);
}

}  // namespace quasi::gw::cuda
