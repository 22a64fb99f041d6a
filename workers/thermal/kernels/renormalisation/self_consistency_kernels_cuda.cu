#include <string>

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/thermal/kernels/renormalisation/hermitian_batch_cuda.cuh"
#include "workers/thermal/kernels/renormalisation/self_consistency_flow.hpp"

namespace quasi::thermal {

namespace {

constexpr const char* kWhat = "self-consistent phonons";

struct OnCuda {
  static constexpr int kChunks = 64;
  template <typename T>
  class Input : public cuda::DeviceBuffer<T> {
   public:
    explicit Input(const std::vector<T>& from) : cuda::DeviceBuffer<T>(from, kWhat) {}
  };
  template <typename T>
  class Array : public cuda::DeviceBuffer<T> {
   public:
    explicit Array(std::size_t n) : cuda::DeviceBuffer<T>(n, kWhat) {}
    void set(const std::vector<T>& values) { this->copy_from(values.data(), values.size(), kWhat); }
  };
  class Eigensolver : public HermitianBatchCuda {
   public:
    using HermitianBatchCuda::HermitianBatchCuda;
    void diagonalise(Array<Complex<double>>& matrices, Array<double>& values) {
      HermitianBatchCuda::diagonalise(matrices.data(), values.data());
    }
  };
  static void use(const Device& device) { use_device(device); }
  static void require_room(const Device& device, std::int64_t bytes) {
    const std::int64_t free = free_memory_bytes(device);
    if (bytes <= free) return;
    throw OutOfMemory("self-consistent phonons need " + std::to_string(bytes >> 20) + " MiB of " +
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

}  // namespace

std::unique_ptr<SelfConsistencyKernels> make_self_consistency_kernels_cuda(const Device& device) {
  return std::make_unique<SelfConsistencyFlow<OnCuda>>(device);
}

}  // namespace quasi::thermal
