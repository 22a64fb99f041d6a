#include "workers/backend/error.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"

namespace quasi::thermal {

std::unique_ptr<ThreePhononKernels> make_three_phonon_kernels_cuda(const Device&) {
  throw BackendAbsent("this program was built without the CUDA back end");
}

}  // namespace quasi::thermal
