#include "bench/published/published_flow_4ph.hpp"
#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/device_problem_4ph_cuda.cuh"

namespace quasi::thermal {

namespace {

struct OnCuda {
  template <typename T>
  class Array : public cuda::DeviceBuffer<T> {
   public:
    explicit Array(std::size_t n) : cuda::DeviceBuffer<T>(n, "lists of four-phonon processes") {}
    explicit Array(const std::vector<T>& from)
        : cuda::DeviceBuffer<T>(from, "lists of four-phonon processes") {}
  };
  template <typename Body>
  static void for_each(std::int64_t n, const Body& body) {
    cuda::for_each_index(n, body, "published four-phonon sums");
  }
  template <typename T>
  static std::vector<T> to_host(const Array<T>& array) {
    return cuda::to_host(array, "published four-phonon sums");
  }
  static void wait() { cuda::check(cudaDeviceSynchronize(), "published four-phonon sums"); }
};

}  // namespace

std::vector<double> published_sums_4ph_cuda(const Device& device, const Problem4ph& problem,
                                            PublishedStrategy strategy, std::int64_t budget_bytes,
                                            StrategySeconds& seconds) {
  use_device(device);
  const cuda4ph::DeviceProblem4ph arrays(problem);
  const Tables4ph host = host_tables(problem), on_device = arrays.tables();
  return PublishedFlow4ph<OnCuda>(strategy, host, on_device, budget_bytes).sums(seconds);
}

}  // namespace quasi::thermal
