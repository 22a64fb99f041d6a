#include "workers/backend/device/launch_cpu.hpp"
#include "workers/thermal/kernels/four_phonon/strategy_flow_4ph.hpp"

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

void count_list_on_host(const Tables4ph& host, std::int64_t first_row, std::int64_t n_places,
                        std::int64_t* count) {
  cpu::for_each_index(n_places, CountList4ph{host, first_row, count});
}

void fill_list_on_host(const Tables4ph& host, std::int64_t first_row, std::int64_t n_places,
                       const std::int64_t* begin, Listed4ph* list) {
  cpu::for_each_index(n_places, FillList4ph{host, first_row, begin, list});
}

std::vector<double> strategy_sums_4ph_cpu(Strategy strategy, const Tables4ph& host,
                                          std::int64_t budget_bytes, StrategySeconds& seconds) {
  return run_strategy_4ph<OnCpu>(strategy, host, host, budget_bytes, seconds);
}

}  // namespace quasi::thermal
