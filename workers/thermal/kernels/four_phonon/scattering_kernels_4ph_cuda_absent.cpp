#include "workers/backend/error.hpp"
#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"

namespace quasi::thermal {

std::unique_ptr<ScatteringKernels4ph> make_scattering_kernels_4ph_cuda(const Device&,
                                                                       std::int64_t) {
  throw BackendAbsent("this program was built without the CUDA back end");
}

}  // namespace quasi::thermal
