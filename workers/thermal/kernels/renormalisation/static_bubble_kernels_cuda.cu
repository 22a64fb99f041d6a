#include "workers/thermal/kernels/renormalisation/on_cuda.cuh"
#include "workers/thermal/kernels/renormalisation/static_bubble_flow.hpp"

namespace quasi::thermal {

std::unique_ptr<StaticBubbleKernels> make_static_bubble_kernels_cuda(const Device& device) {
  return std::make_unique<StaticBubbleFlow<RenormalisationOnCuda>>(device);
}

}  // namespace quasi::thermal
