#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cufft.h>
#include <cusolverDn.h>

#include <string>

#include "workers/backend/device/check_cuda.cuh"
#include "workers/backend/device/late_functions.cuh"
#include "workers/backend/device/owned_handle.cuh"
#include "workers/backend/error.hpp"

/// Owners of cuBLAS and cuSOLVER handles, and checks of the status codes of CUDA's libraries. A
/// handle belongs to the device that is current at its construction.
namespace quasi::cuda {

/// @throws OutOfMemory if the library could not allocate, DeviceLost for any other failure.
inline void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string message = std::string(what) + ": " + late::cublasGetStatusString(status);
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw OutOfMemory(message);
  throw DeviceLost(message);
}

inline void check(cusolverStatus_t status, const char* what) {
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  const std::string message = std::string(what) + ": cuSOLVER status " + std::to_string(status);
  if (status == CUSOLVER_STATUS_ALLOC_FAILED) throw OutOfMemory(message);
  throw DeviceLost(message);
}

inline void check(cufftResult status, const char* what) {
  if (status == CUFFT_SUCCESS) return;
  const std::string message = std::string(what) + ": cuFFT status " + std::to_string(status);
  if (status == CUFFT_ALLOC_FAILED) throw OutOfMemory(message);
  throw DeviceLost(message);
}

inline void destroy_cublas(cublasHandle_t handle) { late::cublasDestroy(handle); }
inline void destroy_cusolver(cusolverDnHandle_t handle) { late::cusolverDnDestroy(handle); }

/// Owns a cuBLAS handle on a stream; nullptr means the default stream. A default-constructed object
/// owns no handle.
class CublasHandle {
 public:
  CublasHandle() = default;
  explicit CublasHandle(cudaStream_t stream) {
    cublasHandle_t handle = nullptr;
    check(late::cublasCreate(&handle), "starting cuBLAS");
    handle_ = OwnedHandle<cublasHandle_t, destroy_cublas>(handle);
    set_stream(stream);
  }
  void set_stream(cudaStream_t stream) const {
    check(late::cublasSetStream(handle_.get(), stream), "choosing the stream of cuBLAS");
  }
  cublasHandle_t get() const { return handle_.get(); }

 private:
  OwnedHandle<cublasHandle_t, destroy_cublas> handle_;
};

/// Owns a cuSOLVER handle for dense matrices on a stream. A default-constructed object owns no
/// handle.
class CusolverHandle {
 public:
  CusolverHandle() = default;
  explicit CusolverHandle(cudaStream_t stream) {
    cusolverDnHandle_t handle = nullptr;
    check(late::cusolverDnCreate(&handle), "starting cuSOLVER");
    handle_ = OwnedHandle<cusolverDnHandle_t, destroy_cusolver>(handle);
    check(late::cusolverDnSetStream(handle, stream), "choosing the stream of cuSOLVER");
  }
  cusolverDnHandle_t get() const { return handle_.get(); }

 private:
  OwnedHandle<cusolverDnHandle_t, destroy_cusolver> handle_;
};

}  // namespace quasi::cuda
