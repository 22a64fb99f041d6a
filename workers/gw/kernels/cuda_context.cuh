#pragma once

#include <cstdint>
#include <memory>

#include "workers/backend/device/device.hpp"
#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/library_handle.cuh"
#include "workers/backend/device/memory_budget.hpp"
#include "workers/backend/device/stream.cuh"
#include "workers/gw/kernels/dense/blocked_inverse_cuda.cuh"
#include "workers/gw/kernels/pair_products/pair_product_kernels.hpp"
#include "workers/gw/kernels/staged_copy.cuh"

namespace quasi::gw::cuda {

using quasi::cuda::check;

inline const double2* as_double2(const Cplx* data) {
  return reinterpret_cast<const double2*>(data);
}

/// Streams and library handles of the kernels of one device. Kernels and the objects that they load
/// share it, so an object may outlive the kernels that made it.
class CudaContext {
 public:
  explicit CudaContext(const Device& device) : device_(device) {
    use_device(device);
    stream_ = quasi::cuda::Stream(quasi::cuda::StreamPriority::kNormal);
    preparation_ = quasi::cuda::Stream(quasi::cuda::StreamPriority::kUrgent);
    blas_ = quasi::cuda::CublasHandle(stream_.get());
    solver_ = quasi::cuda::CusolverHandle(stream_.get());
  }
  const Device& device() const { return device_; }
  /// Makes the device current in this thread.
  void use() const { use_device(device_); }
  cudaStream_t stream() const { return stream_.get(); }
  /// Returns the stream for work that precedes the work of stream().
  cudaStream_t preparation() const { return preparation_.get(); }
  cublasHandle_t blas() const { return blas_.get(); }
  cusolverDnHandle_t solver() const { return solver_.get(); }
  DenseLibraries libraries() const { return {blas(), solver(), stream()}; }
  StagedCopy& staging() { return staging_; }

  /// Copies an array to the device. The copy is complete on return.
  quasi::cuda::DeviceBuffer<double2> to_device(const Cplx* data, std::int64_t count,
                                               const char* what) {
    quasi::cuda::DeviceBuffer<double2> buffer(static_cast<std::size_t>(count), what);
    staging_.to_device(data, count * static_cast<std::int64_t>(sizeof(Cplx)), buffer.data(),
                       stream(), what);
    return buffer;
  }
  /// Copies an array to the host after all work of stream(). The copy is complete on return.
  void to_host(const double2* from, std::int64_t count, Cplx* to, const char* what) {
    check(cudaStreamSynchronize(stream()), what);
    staging_.to_host(from, count * static_cast<std::int64_t>(sizeof(Cplx)), to, stream(), what);
  }
  /// Returns the device memory that one call may take beside resident data. The libraries use the
  /// rest.
  std::int64_t workspace_bytes() const { return free_memory_bytes(device_) / 10 * 8; }

 private:
  Device device_;
  quasi::cuda::Stream stream_, preparation_;
  quasi::cuda::CublasHandle blas_;
  quasi::cuda::CusolverHandle solver_;
  StagedCopy staging_;
};

using SharedContext = std::shared_ptr<CudaContext>;

}  // namespace quasi::gw::cuda
