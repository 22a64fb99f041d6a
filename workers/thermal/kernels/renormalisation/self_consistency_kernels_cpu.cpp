#include "workers/thermal/kernels/renormalisation/on_cpu.hpp"
#include "workers/thermal/kernels/renormalisation/self_consistency_flow.hpp"

namespace quasi::thermal {

std::unique_ptr<SelfConsistencyKernels> make_self_consistency_kernels(const Device& device) {
  if (device.backend == Backend::kCuda) return make_self_consistency_kernels_cuda(device);
  return std::make_unique<SelfConsistencyFlow<RenormalisationOnCpu<>>>(device);
}

}  // namespace quasi::thermal
