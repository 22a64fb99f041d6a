#include "workers/backend/error.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace quasi::gw {

std::unique_ptr<GwKernels> make_gw_kernels_cuda(const Device&) {
  throw BackendAbsent("this program was built without the CUDA kernels of gw; use --device cpu");
}

}  // namespace quasi::gw
