#include "bench/published/published_flow_4ph.hpp"
#include "workers/backend/device/launch_cpu.hpp"

namespace quasi::thermal {

namespace {

struct OnCpu {
  template <typename T>
  class Array {
   public:
    explicit Array(std::size_t n) : values_(n) {}
    explicit Array(const std::vector<T>& from) : values_(from) {}
    T* data() { return values_.data(); }
    const std::vector<T>& values() const { return values_; }

   private:
    std::vector<T> values_;
  };
  template <typename Body>
  static void for_each(std::int64_t n, const Body& body) {
    cpu::for_each_index(n, body);
  }
  template <typename T>
  static std::vector<T> to_host(const Array<T>& array) {
    return array.values();
  }
  static void wait() {}
};

}  // namespace

void count_list_on_host(const Tables4ph& host, std::int64_t first_row, std::int64_t n_indices,
                        std::int64_t* count) {
  cpu::for_each_index(n_indices, CountList4ph{host, first_row, count});
}

void fill_list_on_host(const Tables4ph& host, std::int64_t first_row, std::int64_t n_indices,
                       const std::int64_t* begin, Listed4ph* list) {
  cpu::for_each_index(n_indices, FillList4ph{host, first_row, begin, list});
}

std::vector<double> published_sums_4ph(const Device& device, const Problem4ph& problem,
                                       PublishedStrategy strategy, std::int64_t budget_bytes,
                                       StrategySeconds& seconds) {
  if (device.backend == Backend::kCuda)
    return published_sums_4ph_cuda(device, problem, strategy, budget_bytes, seconds);
  const Tables4ph host = host_tables(problem);
  return PublishedFlow4ph<OnCpu>(strategy, host, host, budget_bytes).sums(seconds);
}

}  // namespace quasi::thermal
