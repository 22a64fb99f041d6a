#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cufft.h>
#include <cusolverDn.h>

#include <cstdint>
#include <string>
#include <utility>

#include "workers/backend/device/check_cuda.cuh"
#include "workers/backend/error.hpp"

/// Owners of the handles that the gw kernels need from CUDA and its libraries, and the turning of
/// their status codes into failures.
namespace quasi::gw::cuda {

using quasi::cuda::check;

inline void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string message = std::string(what) + ": " + cublasGetStatusString(status);
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

/// What a handle is made with, used with and freed with. Movable, never copied.
template <typename Handle, auto kDestroy>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  ~Owned() {
    if (handle_ != Handle{}) kDestroy(handle_);
  }
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_{};
};

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using CublasHandle = Owned<cublasHandle_t, cublasDestroy>;
using CusolverHandle = Owned<cusolverDnHandle_t, cusolverDnDestroy>;

inline Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  return Stream(stream);
}

/// A stream whose thread blocks go before those of other streams, where there is room for them.
inline Stream make_urgent_stream() {
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "reading stream priorities");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest), "making a stream");
  return Stream(stream);
}

inline Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  return Event(event);
}

inline CublasHandle make_cublas(cudaStream_t stream) {
  cublasHandle_t handle = nullptr;
  check(cublasCreate(&handle), "starting cuBLAS");
  CublasHandle owned(handle);
  check(cublasSetStream(handle, stream), "giving cuBLAS its stream");
  return owned;
}

inline CusolverHandle make_cusolver(cudaStream_t stream) {
  cusolverDnHandle_t handle = nullptr;
  check(cusolverDnCreate(&handle), "starting cuSOLVER");
  CusolverHandle owned(handle);
  check(cusolverDnSetStream(handle, stream), "giving cuSOLVER its stream");
  return owned;
}

/// Page-locked host memory: the device copies to and from it at full speed.
template <typename T>
class PinnedBuffer {
 public:
  PinnedBuffer(std::int64_t count, const char* what) {
    check(cudaMallocHost(reinterpret_cast<void**>(&data_),
                         static_cast<std::size_t>(count) * sizeof(T)),
          what);
  }
  ~PinnedBuffer() { cudaFreeHost(data_); }
  PinnedBuffer() = default;
  PinnedBuffer(PinnedBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

/// A cuFFT plan; its handle is an int whose 0 is valid, hence a class of its own.
class FftPlanCuda {
 public:
  FftPlanCuda() = default;
  /// Batched complex transforms of a box, in place, consecutive in memory.
  FftPlanCuda(const int (&box)[3], int batch) {
    int dimensions[3] = {box[0], box[1], box[2]};
    check(cufftPlanMany(&plan_, 3, dimensions, nullptr, 1, 0, nullptr, 1, 0, CUFFT_Z2Z, batch),
          "planning FFTs");
    valid_ = true;
  }
  ~FftPlanCuda() {
    if (valid_) cufftDestroy(plan_);
  }
  FftPlanCuda(FftPlanCuda&& other) noexcept
      : plan_(other.plan_), valid_(std::exchange(other.valid_, false)) {}
  FftPlanCuda& operator=(FftPlanCuda&& other) noexcept {
    std::swap(plan_, other.plan_);
    std::swap(valid_, other.valid_);
    return *this;
  }
  /// Σ_G c(G) e^{+iGr}: the sign of every transform here.
  void run(double2* data, cudaStream_t stream) const {
    check(cufftSetStream(plan_, stream), "giving cuFFT its stream");
    check(cufftExecZ2Z(plan_, data, data, CUFFT_INVERSE), "transforming");
  }

 private:
  cufftHandle plan_ = 0;
  bool valid_ = false;
};

}  // namespace quasi::gw::cuda
