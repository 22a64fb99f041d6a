#include "workers/backend/error.hpp"
#include "workers/gw/kernels/dense/eigen_memory.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/kernels/pole_sums/first_order/first_order_form.hpp"

namespace quasi::gw {

void add_first_order_form_cuda(const FirstOrderProducts&, const FirstOrderPairs&,
                               const FirstOrderForm&, View<Cplx, 4>) {
  throw BackendAbsent("this program was built without the CUDA kernels of gw; use --device cpu");
}

CallMemory memory_of_eigen_hermitian_cuda(const Device&, std::int64_t, bool) {
  throw BackendAbsent("this program was built without the CUDA kernels of gw; use --device cpu");
}

std::unique_ptr<GwKernels> make_gw_kernels_cuda(const Device&) {
  throw BackendAbsent("this program was built without the CUDA kernels of gw; use --device cpu");
}

}  // namespace quasi::gw
