#include "workers/gw/kernels/gw_kernels.hpp"

#include "workers/backend/error.hpp"

namespace quasi::gw {

std::unique_ptr<GwKernels> make_gw_kernels(const Device& device) {
  switch (device.backend) {
    case Backend::kCpu:
      return make_gw_kernels_cpu(device);
    case Backend::kCuda:
      return make_gw_kernels_cuda(device);
  }
  throw BackendAbsent("unknown back end");
}

}  // namespace quasi::gw
