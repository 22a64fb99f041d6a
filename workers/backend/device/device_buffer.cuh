#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "workers/backend/device/check_cuda.cuh"

namespace quasi::cuda {

/// Waits for the kernels, copies and fills of the default stream. Other streams do not wait for the
/// default stream (stream.cuh). Even cudaMemcpy from pageable memory returns while its last part is
/// on the way to the device, so that a kernel of another stream could read the old values.
inline void finish_default_stream(const char* what) { check(cudaStreamSynchronize(nullptr), what); }

/// Owns one array in GPU memory. Movable, never copied by accident, freed on every exit path.
/// `what` names the contents, so that "out of memory" can say what did not fit.
template <typename T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(std::size_t count, const char* what) : count_(count) {
    if (count > 0) check(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), what);
  }
  DeviceBuffer(const std::vector<T>& host, const char* what) : DeviceBuffer(host.size(), what) {
    copy_from(host.data(), host.size(), what);
  }
  // Reports nothing: if freeing fails, the failure that matters is already in flight.
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }

  T* data() const { return data_; }
  std::size_t size() const { return count_; }

  /// Copies from the host: in the order of `stream`, or complete on return if none is named.
  void copy_from(const T* host, std::size_t count, const char* what,
                 cudaStream_t stream = nullptr) {
    if (count == 0) return;
    check(cudaMemcpyAsync(data_, host, count * sizeof(T), cudaMemcpyHostToDevice, stream), what);
    if (stream == nullptr) finish_default_stream(what);
  }
  /// Fills with zero bytes: in the order of `stream`, or complete on return if none is named.
  void zero(const char* what, cudaStream_t stream = nullptr) {
    if (count_ == 0) return;
    check(cudaMemsetAsync(data_, 0, count_ * sizeof(T), stream), what);
    if (stream == nullptr) finish_default_stream(what);
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

/// Copies a whole buffer to the host in the order of `stream` and waits for it. Faults of earlier
/// kernels of that stream surface here.
template <typename T>
std::vector<T> to_host(const DeviceBuffer<T>& buffer, const char* what,
                       cudaStream_t stream = nullptr) {
  std::vector<T> host(buffer.size());
  if (host.empty()) return host;
  check(cudaMemcpyAsync(host.data(), buffer.data(), host.size() * sizeof(T), cudaMemcpyDeviceToHost,
                        stream),
        what);
  check(cudaStreamSynchronize(stream), what);
  return host;
}

}  // namespace quasi::cuda
