#include "workers/backend/error.hpp"
#include "workers/thermal/kernels/renormalisation/self_consistency_kernels.hpp"
#include "workers/thermal/kernels/renormalisation/static_bubble_kernels.hpp"

namespace quasi::thermal {

std::unique_ptr<SelfConsistencyKernels> make_self_consistency_kernels_cuda(const Device&) {
  throw BackendAbsent("this program was built without the CUDA back end");
}

std::unique_ptr<StaticBubbleKernels> make_static_bubble_kernels_cuda(const Device&) {
  throw BackendAbsent("this program was built without the CUDA back end");
}

}  // namespace quasi::thermal
