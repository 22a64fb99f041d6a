#pragma once

#include <cstdint>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cuda.cuh"
#include "workers/gw/kernels/pole_sums/first_order_kernels.hpp"

namespace quasi::gw::cuda {

/// Pair products of both sides in device memory.
struct FirstOrderOnDevice {
  ProductsOnDevice bra, ket;
  std::int64_t n_g = 0;
};

/// A plasmon-pole model on a device, and its rules.
struct FirstOrderModel {
  PoleModelOnDevice poles;
  PoleRules rules;
};

/// LoadedPoleModel::add_first_order on a device (docs/theory/gw.md 14.2). y = F M* of kets and
/// energies is made by launch_pole_rows(), Z = M y by the library, and one batch of products
/// contracts Z with V of all perturbations.
void add_first_order_cuda(CudaContext& context, const FirstOrderModel& model,
                          const FirstOrderOnDevice& products, const FirstOrderPairs& pairs,
                          const FirstOrderTerms& terms, const FirstOrderSums& sums);

/// PoleSumKernels::add_first_order_exchange on a device.
void add_first_order_exchange_cuda(CudaContext& context, const FirstOrderOnDevice& products,
                                   View<const double, 1> coulomb, const FirstOrderPairs& pairs,
                                   View<Cplx, 3> sum);

}  // namespace quasi::gw::cuda
