#include "workers/thermal/kernels/three_phonon/sampling/sampling_flow_3ph.hpp"

namespace quasi::thermal {

namespace {

struct OnCpu {
  static constexpr int kChunks = 1;
  template <typename T>
  class Array {
   public:
    explicit Array(std::size_t n) : values_(n) {}
    explicit Array(std::vector<T> from) : values_(std::move(from)) {}
    T* data() { return values_.data(); }
    const std::vector<T>& values() const { return values_; }

   private:
    std::vector<T> values_;
  };
  static void use(const Device&) {}
  template <typename Body>
  static void for_each(std::int64_t n, const Body& body) {
#pragma omp parallel for schedule(dynamic, 1)
    for (std::int64_t i = 0; i < n; ++i) body(i);
  }
  template <typename T>
  static std::vector<T> to_host(const Array<T>& array) {
    return array.values();
  }
};

}  // namespace

std::unique_ptr<SamplingKernels3> make_sampling_kernels_3ph(const Device& device) {
  if (device.backend == Backend::kCuda) return make_sampling_kernels_3ph_cuda(device);
  return std::make_unique<SamplingFlow3<OnCpu>>(device);
}

}  // namespace quasi::thermal
