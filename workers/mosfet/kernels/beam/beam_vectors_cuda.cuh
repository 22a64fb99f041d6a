#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/backend/device/stream.cuh"
#include "workers/mosfet/kernels/beam/gmres.hpp"

/// Vectors of gmres() on a CUDA device (docs/theory/mosfet.md 17.5).
namespace quasi::mosfet::cuda {

/// Most vectors of one orthogonalisation: the directions of a cycle of gmres().
constexpr int kMostDirections = kGmresRestart;
/// Blocks and threads that share the sums of inner products, and the products of one block.
constexpr int kDotBlocks = 128, kDotThreads = 256, kDotsAtOnce = 8;

/// Directions of GMRES by their addresses.
struct Directions {
  const double* at[kMostDirections];
  int count = 0;
};

/// Sums the values of a block as a tree of fixed shape. The first thread has the sum.
__device__ inline double block_sum(double value, double* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
    __syncthreads();
  }
  const double sum = shared[0];
  __syncthreads();
  return sum;
}

/// Adds the share of each block in Σ weight² a b for all directions b [count][kDotBlocks].
inline __global__ void dot_parts_kernel(std::int64_t size, const double* weight, const double* a,
                                        Directions b, double* parts) {
  __shared__ double shared[kDotThreads];
  const int first = static_cast<int>(blockIdx.y) * kDotsAtOnce;
  double sum[kDotsAtOnce] = {};
  for (std::int64_t at = blockIdx.x * kDotThreads + threadIdx.x; at < size;
       at += kDotBlocks * kDotThreads) {
    const double w = weight[at], x = w * a[at];
#pragma unroll
    for (int n = 0; n < kDotsAtOnce; ++n)
      if (first + n < b.count) sum[n] += x * (w * b.at[first + n][at]);
  }
#pragma unroll
  for (int n = 0; n < kDotsAtOnce; ++n) {
    const double total = block_sum(sum[n], shared);
    if (threadIdx.x == 0 && first + n < b.count)
      parts[(first + n) * kDotBlocks + blockIdx.x] = total;
  }
}

/// Adds the shares of all blocks. Each block adds one product.
inline __global__ void dot_sums_kernel(const double* parts, double* dots) {
  __shared__ double shared[kDotBlocks];
  const double sum = block_sum(parts[blockIdx.x * kDotBlocks + threadIdx.x], shared);
  if (threadIdx.x == 0) dots[blockIdx.x] = sum;
}

/// Subtracts Σ share·direction from a vector.
struct SubtractDirections {
  Directions directions;
  const double* share;  ///< [directions.count]
  double* to;
  __device__ void operator()(std::int64_t at) const {
    double value = to[at];
    for (int n = 0; n < directions.count; ++n) value -= share[n] * directions.at[n][at];
    to[at] = value;
  }
};
/// Adds factor·from to a vector.
struct AddVector {
  double factor;
  const double* from;
  double* to;
  __device__ void operator()(std::int64_t at) const { to[at] += factor * from[at]; }
};
struct ScaleVector {
  double factor;
  double* to;
  __device__ void operator()(std::int64_t at) const { to[at] *= factor; }
};

/// Vectors of gmres() on the device, with the inner product Σ weight² a b. Buffers return to a
/// pool and grow only, because an allocation waits for the whole device.
class DeviceVectors {
 public:
  class Vector {
   public:
    Vector(DeviceVectors* owner, quasi::cuda::DeviceBuffer<double> buffer)
        : owner_(owner), buffer_(std::move(buffer)) {}
    Vector(Vector&& other) noexcept = default;
    Vector& operator=(Vector&& other) noexcept = default;
    ~Vector() {
      if (buffer_.size() > 0) owner_->pool_.push_back(std::move(buffer_));
    }
    double* data() const { return buffer_.data(); }

   private:
    DeviceVectors* owner_;
    quasi::cuda::DeviceBuffer<double> buffer_;
  };

  explicit DeviceVectors(const quasi::cuda::Stream& stream)
      : stream_(stream),
        parts_(kMostDirections * kDotBlocks, "sums of GMRES"),
        dots_(2 * kMostDirections + 1, "sums of GMRES") {}

  /// Sets the length of all vectors. No vector may be in use.
  void resize(std::size_t size) {
    if (size > capacity_) {
      pool_.clear();
      capacity_ = size;
      weight_ = {capacity_, "weights of GMRES"};
    }
    size_ = size;
  }
  /// Returns the weights, for the caller to fill.
  double* weight() { return weight_.data(); }

  Vector take() {
    if (pool_.empty())
      return {this, quasi::cuda::DeviceBuffer<double>(capacity_, "directions of GMRES")};
    quasi::cuda::DeviceBuffer<double> buffer = std::move(pool_.back());
    pool_.pop_back();
    return {this, std::move(buffer)};
  }

  double dot(const Vector& a, const Vector& b) const {
    dots(a, directions_of(&b, 1), 0);
    return sums(1)[0];
  }

  /// Makes `next` orthogonal to a basis by two passes of Gram and Schmidt. @return its components
  /// along the basis, followed by the length of what is left
  std::vector<double> orthogonalise(const std::vector<Vector>& basis, Vector* next) const {
    const int count = static_cast<int>(basis.size());
    const Directions all = directions_of(basis.data(), count);
    for (int pass = 0; pass < 2; ++pass) {
      dots(*next, all, pass * count);
      run(SubtractDirections{all, dots_.data() + pass * count, next->data()}, "orthogonal vector");
    }
    dots(*next, directions_of(next, 1), 2 * count);
    const std::vector<double> sum = sums(2 * count + 1);
    std::vector<double> h(sum.begin(), sum.begin() + count);
    for (int k = 0; k < count; ++k) h[static_cast<std::size_t>(k)] += sum[count + k];
    h.push_back(std::sqrt(sum.back()));
    return h;
  }

  void add(double factor, const Vector& from, Vector* to) const {
    run(AddVector{factor, from.data(), to->data()}, "sum of vectors");
  }
  void scale(double factor, Vector* v) const {
    run(ScaleVector{factor, v->data()}, "multiple of a vector");
  }

 private:
  static Directions directions_of(const Vector* vectors, int count) {
    Directions all;
    for (; all.count < count; ++all.count) all.at[all.count] = vectors[all.count].data();
    return all;
  }
  template <typename Body>
  void run(const Body& body, const char* what) const {
    quasi::cuda::for_each_index(static_cast<std::int64_t>(size_), body, what, stream_.get());
  }
  // Writes the products of `a` with the directions from this place of the sums on.
  void dots(const Vector& a, const Directions& b, int place) const {
    const dim3 blocks(kDotBlocks, static_cast<unsigned>((b.count + kDotsAtOnce - 1) / kDotsAtOnce));
    dot_parts_kernel<<<blocks, kDotThreads, 0, stream_.get()>>>(
        static_cast<std::int64_t>(size_), weight_.data(), a.data(), b, parts_.data());
    quasi::cuda::check_launch("inner products");
    dot_sums_kernel<<<static_cast<unsigned>(b.count), kDotBlocks, 0, stream_.get()>>>(
        parts_.data(), dots_.data() + place);
    quasi::cuda::check_launch("inner products");
  }
  std::vector<double> sums(int count) const {
    std::vector<double> host(static_cast<std::size_t>(count));
    quasi::cuda::check(cudaMemcpyAsync(host.data(), dots_.data(), host.size() * sizeof(double),
                                       cudaMemcpyDeviceToHost, stream_.get()),
                       "inner products");
    stream_.synchronize("inner products");
    return host;
  }

  const quasi::cuda::Stream& stream_;
  std::size_t size_ = 0, capacity_ = 0;
  quasi::cuda::DeviceBuffer<double> weight_, parts_, dots_;
  std::vector<quasi::cuda::DeviceBuffer<double>> pool_;
};

}  // namespace quasi::mosfet::cuda
