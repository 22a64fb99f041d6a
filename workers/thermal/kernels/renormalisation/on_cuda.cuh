#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/thermal/kernels/renormalisation/batched_product.hpp"
#include "workers/thermal/kernels/renormalisation/hermitian_batch_cuda.cuh"

namespace quasi::thermal {

/// Back end of SelfConsistencyFlow and StaticBubbleFlow (docs/theory/thermal.md 14) on a GPU. All
/// work is on the default stream.
struct RenormalisationOnCuda {
  static constexpr int kChunks = 64;
  static constexpr const char* kWhat = "renormalised phonons";

  template <typename T>
  class Input : public cuda::DeviceBuffer<T> {
   public:
    explicit Input(const std::vector<T>& from) : cuda::DeviceBuffer<T>(from, kWhat) {}
  };
  template <typename T>
  class Array : public cuda::DeviceBuffer<T> {
   public:
    explicit Array(std::size_t n) : cuda::DeviceBuffer<T>(n, kWhat) { this->zero(kWhat); }
    void set(const std::vector<T>& values) { this->copy_from(values.data(), values.size(), kWhat); }
  };

  class Eigensolver : public HermitianBatchCuda {
   public:
    using HermitianBatchCuda::HermitianBatchCuda;
    void diagonalise(Array<Complex<double>>& matrices, Array<double>& values) {
      HermitianBatchCuda::diagonalise(matrices.data(), values.data());
    }
  };

  class Products {
   public:
    // cuBLAS has column-major matrices, which are the transposes of ours: Cᵀ = op(B)ᵀ Aᵀ.
    void multiply(const BatchedProduct& p) const {
      constexpr std::int64_t kLargestBatch = 32768;
      const cuDoubleComplex one{1.0, 0.0}, zero{0.0, 0.0};
      for (std::int64_t i = 0; i < p.batch; i += kLargestBatch)
        cuda::check(
            cuda::late::cublasZgemmStridedBatched(
                cublas_.get(), p.adjoint_b ? CUBLAS_OP_C : CUBLAS_OP_N, CUBLAS_OP_N,
                static_cast<int>(p.n), static_cast<int>(p.m), static_cast<int>(p.k), &one,
                reinterpret_cast<const cuDoubleComplex*>(p.b + i * p.b_stride),
                static_cast<int>(p.adjoint_b ? p.k : p.n), p.b_stride,
                reinterpret_cast<const cuDoubleComplex*>(p.a + i * p.a_stride),
                static_cast<int>(p.k), p.a_stride, &zero,
                reinterpret_cast<cuDoubleComplex*>(p.c + i * p.c_stride), static_cast<int>(p.n),
                p.c_stride, static_cast<int>(std::min(kLargestBatch, p.batch - i))),
            kWhat);
    }

   private:
    cuda::CublasHandle cublas_{nullptr};
  };

  static void use(const Device& device) { use_device(device); }
  static void require_room(const Device& device, std::int64_t bytes) {
    const std::int64_t free = free_memory_bytes(device);
    if (bytes <= free) return;
    throw OutOfMemory(std::string(kWhat) + " need " + std::to_string(bytes >> 20) + " MiB of " +
                      device.name() + " and " + std::to_string(free >> 20) +
                      " MiB are free; use a coarser 'renormalise_mesh' or --device cpu");
  }
  template <typename Body>
  static void for_each(std::int64_t n, const Body& body) {
    cuda::for_each_index(n, body, kWhat);
  }
  template <typename T>
  static std::vector<T> to_host(const Array<T>& array, std::size_t n) {
    std::vector<T> host(n);
    if (n == 0) return host;
    cuda::check(
        cudaMemcpyAsync(host.data(), array.data(), n * sizeof(T), cudaMemcpyDeviceToHost, nullptr),
        kWhat);
    cuda::finish_default_stream(kWhat);
    return host;
  }
};

}  // namespace quasi::thermal
