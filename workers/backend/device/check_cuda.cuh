#pragma once

#include <cuda_runtime.h>

#include <string>

#include "workers/backend/error.hpp"

namespace quasi::cuda {

/// Turns a CUDA status into an exception whose type says who must act. `what` names the operation.
inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  const std::string message = std::string(what) + ": " + cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears the status, so that the context stays usable
    throw OutOfMemory(message);
  }
  if (status == cudaErrorNoKernelImageForDevice)
    throw BackendAbsent(
        message +
        "; this build has no code for the device's compute capability: configure it with "
        "-DCMAKE_CUDA_ARCHITECTURES=80, 90, … or use --device cpu");
  throw DeviceLost(message);
}

/// Checks for invalid launch parameters after a kernel launch. Faults of the kernel appear at the
/// next synchronisation.
inline void check_launch(const char* what) { check(cudaGetLastError(), what); }

}  // namespace quasi::cuda
