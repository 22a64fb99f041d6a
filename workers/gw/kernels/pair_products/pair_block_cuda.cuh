#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/pair_products/pair_product_kernels.hpp"

namespace quasi::gw::cuda {

/// A block of pair products in the memory of one device. See docs/theory/gw.md 3 for the equations.
class CudaPairBlock final : public PairBlock {
 public:
  explicit CudaPairBlock(SharedContext context) : context_(std::move(context)) {}
  void load(View<const Cplx, 3> products) override;
  void read(View<Cplx, 3> products) const override;
  void replace_plane_wave(std::int64_t g, View<const Cplx, 2> values) override;
  void project(View<const Cplx, 2> basis) override;
  void weighted_norms(View<const double, 1> v, View<double, 2> sum) const override;
  void quadratic_forms(View<const Cplx, 2> matrix, View<Cplx, 2> form) const override;
  void quadratic_form_matrix(View<const Cplx, 2> matrix, View<const double, 2> weight,
                             View<Cplx, 3> sum) const override;
  void diagonal_form_matrix(View<const Cplx, 2> diagonal, View<const double, 3> weight,
                            View<Cplx, 3> sum) const override;

  /// quadratic_forms() with a matrix in the memory of this device, [n_g][n_g].
  void forms_with(quasi::cuda::DeviceBuffer<double2> matrix, View<Cplx, 2> form) const;
  /// Sets the shape of the block; its values become undefined. The memory is kept if at least half
  /// of it is used. @returns the first value
  double2* resize(std::int64_t n_left, std::int64_t n_right, std::int64_t n_g);
  /// Returns the products in device memory, [n_left][n_right][n_g].
  const double2* data() const { return products_.data(); }
  /// Returns the context of the device that has the products.
  CudaContext& context() const { return *context_; }
  /// Returns the number of rows of length n_g that a scratch array may have; they take at most 4
  /// GB.
  std::int64_t rows_that_fit(const char* what) const;

 private:
  /// Computes the forms of all pairs with a matrix in device memory.
  void complex_quadratic_forms(const quasi::cuda::DeviceBuffer<double2>& w, double2* form) const;
  /// The same for products and a matrix without imaginary parts: real products take a quarter of
  /// the operations.
  void real_quadratic_forms(quasi::cuda::DeviceBuffer<double2> w, double2* form) const;

  SharedContext context_;
  quasi::cuda::DeviceBuffer<double2> products_;
};

}  // namespace quasi::gw::cuda
