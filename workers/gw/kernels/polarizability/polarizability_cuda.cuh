#pragma once

#include <cstdint>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/pair_products/pair_products_cuda.cuh"
#include "workers/gw/kernels/polarizability/polarizability_kernels.hpp"

namespace quasi::gw::cuda {

/// Sums χ by cuBLAS, in the memory of one device. See docs/theory/gw.md 4 for the equations.
class CudaPolarizabilityKernels final : public PolarizabilityKernels {
 public:
  /// @param pair_products  makes the products of ChiSum::add_pairs
  CudaPolarizabilityKernels(SharedContext context,
                            std::shared_ptr<PairProductTransforms> pair_products)
      : context_(std::move(context)), pair_products_(std::move(pair_products)) {}
  std::unique_ptr<ChiSum> start(const ChiShape& shape) override;
  std::unique_ptr<SlicedChiSum> start_slices(std::int64_t n,
                                             const std::vector<ElementRows>& slices) override;
  std::unique_ptr<PartialChi> load(const ChiShape& shape, const Cplx* values) override;
  std::unique_ptr<PartialChi> load_triangle(std::int64_t n, const double* values) override;
  void invert_dielectric(const PartialChi& chi, std::int64_t frequency, const Inversion& how,
                         View<Cplx, 2> inverse) override;
  std::unique_ptr<const DielectricInverse> invert_definite(std::unique_ptr<PartialChi> chi,
                                                           View<const double, 1> coulomb) override;

 private:
  SharedContext context_;
  std::shared_ptr<PairProductTransforms> pair_products_;
};

}  // namespace quasi::gw::cuda
