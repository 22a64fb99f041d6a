#pragma once

#include <cstdint>
#include <memory>

#include "workers/gw/kernels/dense/dense_kernels_cpu.hpp"
#include "workers/gw/kernels/pair_products/pair_products_cpu.hpp"
#include "workers/gw/kernels/polarizability/polarizability_kernels.hpp"

namespace quasi::gw {

/// Sums χ by BLAS, in host memory. See docs/theory/gw.md 4 for the equations.
class CpuPolarizabilityKernels final : public PolarizabilityKernels {
 public:
  /// @param pair_products  makes the products of ChiSum::add_pairs; outlives this object
  explicit CpuPolarizabilityKernels(CpuPairProductKernels& pair_products)
      : pair_products_(pair_products) {}
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
  CpuPairProductKernels& pair_products_;
  CpuDenseKernels dense_;
};

}  // namespace quasi::gw
