#pragma once

#include <cstdint>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cuda.cuh"
#include "workers/gw/kernels/pole_sums/first_order_kernels.hpp"

namespace quasi::gw::cuda {

/// Holds pair products in device memory: M_ln'(G) of the bra [n_l][n_bra][n_g] and M_mn(G) of the
/// ket [n_m][n_ket][n_g].
struct FirstOrderOnDevice {
  ProductsOnDevice bra, ket;
  std::int64_t n_g = 0;
};

/// Holds a plasmon-pole model in device memory and the rules near its poles.
struct FirstOrderModel {
  PoleModelOnDevice poles;
  PoleRules rules;
};

/// Adds the first order of Σ_c to `sums` on a device, Ry/Bohr, as LoadedPoleModel::add_first_order
/// defines it (docs/theory/gw.md 14.2). launch_pole_rows() makes y = F M* for kets and energies,
/// and cuBLAS makes Z = M y. One batch of products contracts Z with V of all perturbations.
void add_first_order_cuda(CudaContext& context, const FirstOrderModel& model,
                          const FirstOrderOnDevice& products, const FirstOrderPairs& pairs,
                          const FirstOrderTerms& terms, const FirstOrderSums& sums);

/// Adds the first order of the exchange on a device, as PoleSumKernels::add_first_order_exchange
/// defines it.
/// @param coulomb  v̄(q+G) in host memory, [n_g]
/// @param sum  Ry/Bohr, [n_p][n_l][n_m]
void add_first_order_exchange_cuda(CudaContext& context, const FirstOrderOnDevice& products,
                                   View<const double, 1> coulomb, const FirstOrderPairs& pairs,
                                   View<Cplx, 3> sum);

}  // namespace quasi::gw::cuda
