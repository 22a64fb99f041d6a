#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "workers/backend/device/check_cuda.cuh"

namespace quasi::cuda {

/// Waits for copies and fills of the default stream. Even cudaMemcpy to the device returns while
/// the last part of pageable memory is on its way, and a stream made with cudaStreamNonBlocking
/// does not wait for it: a kernel there could read what was before.
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

  // In a stream: in its order. Without one: done for every stream when it returns
  // (finish_default_stream).
  void copy_from(const T* host, std::size_t count, const char* what,
                 cudaStream_t stream = nullptr) {
    if (count == 0) return;
    check(cudaMemcpyAsync(data_, host, count * sizeof(T), cudaMemcpyHostToDevice, stream), what);
    if (stream == nullptr) finish_default_stream(what);
  }
  void zero(const char* what, cudaStream_t stream = nullptr) {
    if (count_ == 0) return;
    check(cudaMemsetAsync(data_, 0, count_ * sizeof(T), stream), what);
    if (stream == nullptr) finish_default_stream(what);
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

/// Copies a whole buffer to the host and waits for it: faults of earlier kernels surface here.
template <typename T>
std::vector<T> to_host(const DeviceBuffer<T>& buffer, const char* what) {
  std::vector<T> host(buffer.size());
  if (!host.empty())
    check(cudaMemcpy(host.data(), buffer.data(), host.size() * sizeof(T), cudaMemcpyDeviceToHost),
          what);
  return host;
}

}  // namespace quasi::cuda
