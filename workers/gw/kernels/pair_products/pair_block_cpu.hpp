#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/kernels/pair_products/pair_product_kernels.hpp"

namespace quasi::gw {

/// A block of pair products in host memory. See docs/theory/gw.md 3 for the equations.
class CpuPairBlock final : public PairBlock {
 public:
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

  /// Sets the shape of the block; its values become undefined. @returns the first value
  Cplx* resize(std::int64_t n_left, std::int64_t n_right, std::int64_t n_g);
  const std::vector<Cplx>& values() const { return products_; }
  /// Returns the products, [n_left][n_right][n_g].
  View<const Cplx, 3> view() const { return {products_.data(), {n_left_, n_right_, n_g_}}; }

 private:
  /// Returns M W, [n_pairs][n_g].
  std::vector<Cplx> times(View<const Cplx, 2> matrix) const;
  std::vector<Cplx> products_;  ///< [n_left][n_right][n_g]
};

}  // namespace quasi::gw
