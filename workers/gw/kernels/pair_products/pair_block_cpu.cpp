#include "workers/gw/kernels/pair_products/pair_block_cpu.hpp"

#include <algorithm>
#include <utility>

#include "workers/gw/kernels/dense/zgemm_cpu.hpp"

namespace quasi::gw {
namespace {

constexpr Cplx kOne{1.0, 0.0};

}  // namespace

Cplx* CpuPairBlock::resize(std::int64_t n_left, std::int64_t n_right, std::int64_t n_g) {
  n_left_ = n_left;
  n_right_ = n_right;
  n_g_ = n_g;
  products_.resize(static_cast<std::size_t>(n_left * n_right * n_g));
  return products_.data();
}

void CpuPairBlock::load(View<const Cplx, 3> products) {
  resize(products.extent[0], products.extent[1], products.extent[2]);
  std::copy(products.data, products.data + products.size(), products_.begin());
}

void CpuPairBlock::read(View<Cplx, 3> products) const {
  std::copy(products_.begin(), products_.end(), products.data);
}

void CpuPairBlock::replace_plane_wave(std::int64_t g, View<const Cplx, 2> values) {
  for (std::int64_t p = 0; p < n_pairs(); ++p)
    products_[static_cast<std::size_t>(p * n_g_ + g)] = values.data[p];
}

void CpuPairBlock::project(View<const Cplx, 2> basis) {
  const std::int64_t n_basis = basis.extent[1];
  std::vector<Cplx> projected(static_cast<std::size_t>(n_pairs() * n_basis));
  zgemm({CblasNoTrans, n_pairs(), n_basis, n_g_}, {products_.data(), n_g_}, {basis.data, n_basis},
        {projected.data(), n_basis});
  products_ = std::move(projected);
  n_g_ = n_basis;
}

void CpuPairBlock::weighted_norms(View<const double, 1> v, View<double, 2> sum) const {
#pragma omp parallel for schedule(static)
  for (std::int64_t p = 0; p < n_pairs(); ++p) {
    double norm = 0.0;
    for (std::int64_t g = 0; g < n_g_; ++g)
      norm += std::norm(products_[static_cast<std::size_t>(p * n_g_ + g)]) * v(g);
    sum.data[p] = norm;
  }
}

void CpuPairBlock::quadratic_forms(View<const Cplx, 2> matrix, View<Cplx, 2> form) const {
  const std::vector<Cplx> right = times(matrix);
  for (std::int64_t p = 0; p < n_pairs(); ++p) {
    Cplx sum;
    for (std::int64_t g = 0; g < n_g_; ++g)
      sum += right[static_cast<std::size_t>(p * n_g_ + g)] *
             std::conj(products_[static_cast<std::size_t>(p * n_g_ + g)]);
    form.data[p] = sum;
  }
}

void CpuPairBlock::quadratic_form_matrix(View<const Cplx, 2> matrix, View<const double, 2> weight,
                                         View<Cplx, 3> sum) const {
  std::vector<Cplx> right = times(matrix);
  const std::int64_t k = n_right_ * n_g_;
  if (sum.extent[0] == 1) {
    for (std::int64_t p = 0; p < n_pairs(); ++p)
      for (std::int64_t g = 0; g < n_g_; ++g)
        right[static_cast<std::size_t>(p * n_g_ + g)] *= weight(0, p % n_right_);
    // Rows l of both blocks hold all (n, G) together, so one product sums over both.
    zgemm({CblasConjTrans, n_left_, n_left_, k, kOne, kOne}, {right.data(), k},
          {products_.data(), k}, {sum.data, n_left_});
    return;
  }
  std::vector<Cplx> band_form(static_cast<std::size_t>(n_left_ * n_left_));
  for (std::int64_t n = 0; n < n_right_; ++n) {
    zgemm({CblasConjTrans, n_left_, n_left_, n_g_}, {right.data() + n * n_g_, k},
          {products_.data() + n * n_g_, k}, {band_form.data(), n_left_});
    for (std::int64_t e = 0; e < sum.extent[0]; ++e) {
      const double w = weight(e, n);
      if (w == 0.0) continue;
      Cplx* to = sum.data + e * n_left_ * n_left_;
      for (std::int64_t i = 0; i < n_left_ * n_left_; ++i)
        to[i] += w * band_form[static_cast<std::size_t>(i)];
    }
  }
}

void CpuPairBlock::diagonal_form_matrix(View<const Cplx, 2> diagonal, View<const double, 3> weight,
                                        View<Cplx, 3> sum) const {
  const std::int64_t row = n_right_ * n_g_;  // distance between consecutive l
  std::vector<Cplx> scaled(static_cast<std::size_t>(n_left_ * n_g_)),
      band_form(static_cast<std::size_t>(n_left_ * n_left_));
  for (std::int64_t n = 0; n < n_right_; ++n)
    for (std::int64_t f = 0; f < diagonal.extent[0]; ++f) {
      const Cplx* m = products_.data() + n * n_g_;
      for (std::int64_t l = 0; l < n_left_; ++l)
        for (std::int64_t g = 0; g < n_g_; ++g)
          scaled[static_cast<std::size_t>(l * n_g_ + g)] = m[l * row + g] * diagonal(f, g);
      zgemm({CblasConjTrans, n_left_, n_left_, n_g_}, {scaled.data(), n_g_}, {m, row},
            {band_form.data(), n_left_});
      for (std::int64_t e = 0; e < sum.extent[0]; ++e)
        cblas_daxpy(static_cast<int>(2 * n_left_ * n_left_), weight(n, f, e),
                    reinterpret_cast<const double*>(band_form.data()), 1,
                    reinterpret_cast<double*>(sum.data + e * n_left_ * n_left_), 1);
    }
}

std::vector<Cplx> CpuPairBlock::times(View<const Cplx, 2> matrix) const {
  std::vector<Cplx> right(products_.size());
  zgemm({CblasNoTrans, n_pairs(), n_g_, n_g_}, {products_.data(), n_g_}, {matrix.data, n_g_},
        {right.data(), n_g_});
  return right;
}

}  // namespace quasi::gw
