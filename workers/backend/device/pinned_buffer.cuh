#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "workers/backend/device/check_cuda.cuh"

namespace quasi::cuda {

/// Owns page-locked host memory for `count` values of T. The device copies to and from it at full
/// speed while the host does other work. `what` names the contents in an "out of memory" message.
template <typename T>
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(std::size_t count, const char* what) : count_(count) {
    check(cudaMallocHost(reinterpret_cast<void**>(&data_),
                         std::max<std::size_t>(1, count) * sizeof(T)),
          what);
  }
  // A failure to free is not reported, because it only follows an earlier failure.
  ~PinnedBuffer() { cudaFreeHost(data_); }
  PinnedBuffer(PinnedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  T* data() const { return data_; }
  std::size_t size() const { return count_; }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace quasi::cuda
