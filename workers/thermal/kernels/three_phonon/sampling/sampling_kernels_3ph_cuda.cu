#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/thermal/kernels/three_phonon/sampling/sampling_flow_3ph.hpp"

namespace quasi::thermal {

namespace {

constexpr const char* kWhat = "draws of three-phonon processes";

struct OnCuda {
  static constexpr int kChunks = 64;
  template <typename T>
  class Array : public cuda::DeviceBuffer<T> {
   public:
    explicit Array(std::size_t n) : cuda::DeviceBuffer<T>(n, kWhat) {}
    explicit Array(const std::vector<T>& from) : cuda::DeviceBuffer<T>(from, kWhat) {}
  };
  static void use(const Device& device) { use_device(device); }
  template <typename Body>
  static void for_each(std::int64_t n, const Body& body) {
    cuda::for_each_index(n, body, kWhat);
  }
  template <typename T>
  static std::vector<T> to_host(const Array<T>& array) {
    return cuda::to_host(array, kWhat);
  }
};

}  // namespace

std::unique_ptr<SamplingKernels3> make_sampling_kernels_3ph_cuda(const Device& device) {
  return std::make_unique<SamplingFlow3<OnCuda>>(device);
}

}  // namespace quasi::thermal
