#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "workers/backend/device/check_cuda.cuh"

namespace quasi::cuda {

/// Waits for the kernels, copies and fills of the default stream. Other streams do not wait for the
/// default stream (stream.cuh). Even cudaMemcpy from pageable memory returns before its last part
/// has arrived, so a kernel of another stream could read old values.
inline void finish_default_stream(const char* what) { check(cudaStreamSynchronize(nullptr), what); }

/// Owns one array in GPU memory. It can be moved but not copied, and is freed on every exit path.
/// `what` names the contents in an "out of memory" message.
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
  // A failure to free is not reported, because it only follows an earlier failure.
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

  /// Copies from the host. The copy is ordered on `stream`, or complete on return if no stream is
  /// named.
  void copy_from(const T* host, std::size_t count, const char* what,
                 cudaStream_t stream = nullptr) {
    if (count == 0) return;
    check(cudaMemcpyAsync(data_, host, count * sizeof(T), cudaMemcpyHostToDevice, stream), what);
    if (stream == nullptr) finish_default_stream(what);
  }
  /// Fills with zero bytes. The fill is ordered on `stream`, or complete on return if no stream is
  /// named.
  void zero(const char* what, cudaStream_t stream = nullptr) {
    if (count_ == 0) return;
    check(cudaMemsetAsync(data_, 0, count_ * sizeof(T), stream), what);
    if (stream == nullptr) finish_default_stream(what);
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

/// Copies a whole buffer to the host, ordered on `stream`, and waits for it. Faults of earlier
/// kernels of the stream are reported here.
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
