#include "bench/published/published_sums_3ph.hpp"
#include "workers/backend/error.hpp"

namespace quasi::thermal {

std::unique_ptr<ThreePhononSums> make_published_sums_3ph_cuda(const Device&, PublishedStrategy) {
  throw BackendAbsent("this program was built without the CUDA back end");
}

}  // namespace quasi::thermal
