#include "workers/thermal/kernels/renormalisation/on_cuda.cuh"
#include "workers/thermal/kernels/renormalisation/self_consistency_flow.hpp"

namespace quasi::thermal {

std::unique_ptr<SelfConsistencyKernels> make_self_consistency_kernels_cuda(const Device& device) {
  return std::make_unique<SelfConsistencyFlow<RenormalisationOnCuda>>(device);
}

}  // namespace quasi::thermal
