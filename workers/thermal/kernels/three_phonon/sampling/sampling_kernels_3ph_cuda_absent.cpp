#include "workers/backend/error.hpp"
#include "workers/thermal/kernels/three_phonon/sampling/sampling_kernels_3ph.hpp"

namespace quasi::thermal {

std::unique_ptr<SamplingKernels3> make_sampling_kernels_3ph_cuda(const Device&) {
  throw BackendAbsent("this program was built without the CUDA back end");
}

}  // namespace quasi::thermal
