#include <memory>
#include <utility>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/dense/dense_kernels_cuda.cuh"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/kernels/hamiltonian/hamiltonian_cuda.cuh"
#include "workers/gw/kernels/pair_products/pair_products_cuda.cuh"
#include "workers/gw/kernels/polarizability/polarizability_cuda.cuh"
#include "workers/gw/kernels/pole_sums/pole_sums_cuda.cuh"

namespace quasi::gw {

std::unique_ptr<GwKernels> make_gw_kernels_cuda(const Device& device) {
  const auto context = std::make_shared<cuda::CudaContext>(device);
  const auto transforms = std::make_shared<cuda::PairProductTransforms>();
  return std::make_unique<GwKernels>(
      device,
      GwKernels::Parts{
          .pair_products = std::make_unique<cuda::CudaPairProductKernels>(context, transforms),
          .polarizability = std::make_unique<cuda::CudaPolarizabilityKernels>(context, transforms),
          .pole_sums = std::make_unique<cuda::CudaPoleSumKernels>(context),
          .dense = std::make_unique<cuda::CudaDenseKernels>(context),
          .hamiltonian = std::make_unique<cuda::CudaHamiltonianKernels>(context)});
}

}  // namespace quasi::gw
