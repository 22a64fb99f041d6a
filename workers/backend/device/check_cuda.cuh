#pragma once

#include <cuda_runtime.h>

#include <string>

#include "workers/backend/error.hpp"

namespace quasi::cuda {

/// Turns a CUDA status into the failure that names who must act; `what` says what was being done.
inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  const std::string message = std::string(what) + ": " + cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // Not sticky: the context stays usable.
    throw OutOfMemory(message);
  }
  if (status == cudaErrorNoKernelImageForDevice)
    throw BackendAbsent(
        message +
        "; this build has no code for the device's compute capability: configure it with "
        "-DCMAKE_CUDA_ARCHITECTURES=80, 90, … or use --device cpu");
  throw DeviceLost(message);
}

/// After a kernel launch: catches bad launch parameters at once; faults surface at the next sync.
inline void check_launch(const char* what) { check(cudaGetLastError(), what); }

}  // namespace quasi::cuda
