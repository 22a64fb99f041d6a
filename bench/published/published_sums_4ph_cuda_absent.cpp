#include "bench/published/published_sums_4ph.hpp"
#include "workers/backend/error.hpp"

namespace quasi::thermal {

std::vector<double> published_sums_4ph_cuda(const Device&, const Problem4ph&, PublishedStrategy,
                                            std::int64_t, StrategySeconds&) {
  throw BackendAbsent("this build has no CUDA back end");
}

}  // namespace quasi::thermal
