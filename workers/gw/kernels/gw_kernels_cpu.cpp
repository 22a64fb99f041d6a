#include "workers/gw/kernels/dense/dense_kernels_cpu.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/kernels/hamiltonian/hamiltonian_kernels_cpu.hpp"
#include "workers/gw/kernels/pair_products/pair_products_cpu.hpp"
#include "workers/gw/kernels/polarizability/polarizability_cpu.hpp"
#include "workers/gw/kernels/pole_sums/pole_sums_cpu.hpp"

namespace quasi::gw {

std::unique_ptr<GwKernels> make_gw_kernels_cpu(const Device& device) {
  auto pair_products = std::make_unique<CpuPairProductKernels>();
  auto polarizability = std::make_unique<CpuPolarizabilityKernels>(*pair_products);
  return std::make_unique<GwKernels>(
      device, GwKernels::Parts{.pair_products = std::move(pair_products),
                               .polarizability = std::move(polarizability),
                               .pole_sums = std::make_unique<CpuPoleSumKernels>(),
                               .dense = std::make_unique<CpuDenseKernels>(),
                               .hamiltonian = std::make_unique<CpuHamiltonianKernels>()});
}

}  // namespace quasi::gw
