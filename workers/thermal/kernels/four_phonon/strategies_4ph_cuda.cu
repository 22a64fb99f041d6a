#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/strategy_flow_4ph.hpp"

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
    cuda::for_each_index(n, body, "a strategy of four-phonon sums");
  }
  template <typename T>
  static std::vector<T> to_host(const Array<T>& array) {
    return cuda::to_host(array, "a strategy of four-phonon sums");
  }
  static void wait() { cuda::check(cudaDeviceSynchronize(), "a strategy of four-phonon sums"); }
};

}  // namespace

std::vector<double> strategy_sums_4ph_cuda(Strategy strategy, const Tables4ph& host,
                                           const Tables4ph& on_device, std::int64_t budget_bytes,
                                           StrategySeconds& seconds) {
  return run_strategy_4ph<OnCuda>(strategy, host, on_device, budget_bytes, seconds);
}

}  // namespace quasi::thermal
