#include "workers/gw/kernels/polarizability/polarizability_cpu.hpp"

#include <cblas.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "workers/backend/team/blas_threads.hpp"
#include "workers/gw/physics/dielectric.hpp"

namespace quasi::gw {
namespace {

constexpr Cplx kOne{1.0, 0.0};
/// Size of one block of pair products in add_pairs().
constexpr std::int64_t kBlockBytes = std::int64_t{256} << 20;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Returns the common sign of the weights of a block.
double sign_of(View<const double, 2> weight) {
  double sign = 0.0;
  for (std::int64_t p = 0; p < weight.size(); ++p) {
    if (weight.data[p] * sign < 0.0)
      throw std::logic_error("the weights of one block of pairs differ in sign");
    if (weight.data[p] != 0.0) sign = weight.data[p] > 0.0 ? 1.0 : -1.0;
  }
  return sign;
}

bool is_real(const PairSum::Pairs& pairs) {
  return dynamic_cast<const CpuBands&>(pairs.left.bands).real &&
         dynamic_cast<const CpuBands&>(pairs.right.bands).real &&
         dynamic_cast<const CpuSphere&>(pairs.sphere).real &&
         std::all_of(pairs.head.data, pairs.head.data + (pairs.head.data ? pairs.head.size() : 0),
                     [](const Cplx& m) { return m.imag() == 0.0; });
}

/// Makes the products of pairs of bands, block by block, and calls use(weight, real) for each block
/// of products.
template <typename Use>
PairSum::PairsReport for_each_block(const PairSum::Pairs& pairs,
                                    const PairSum::PairsOptions& options,
                                    CpuPairProductKernels& pair_products, CpuPairBlock& block,
                                    const Use& use) {
  const auto& sphere = dynamic_cast<const CpuSphere&>(pairs.sphere);
  const BandRange left = pairs.left.range;
  const std::int64_t n_right = pairs.right.range.size();
  const View<const Cplx, 3>& head = pairs.head;
  PairSum::PairsReport report{.real = options.use_real && is_real(pairs)};
  const std::int64_t bytes = options.block_bytes > 0 ? options.block_bytes : kBlockBytes;
  const std::int64_t rows = std::max<std::int64_t>(1, bytes / (16 * n_right * sphere.n_g()));
  for (std::int64_t l = 0; l < left.size(); l += rows) {
    const std::int64_t n_left = std::min(rows, left.size() - l);
    const View<const double, 2> weight{pairs.weight.data + l * n_right, {n_left, n_right}};
    const double start = now_s();
    pair_products.fill({pairs.left.bands, {left.begin + l, left.begin + l + n_left}}, pairs.right,
                       sphere, block);
    for (std::int64_t i = 0; head.data != nullptr && i < head.extent[0]; ++i)
      block.replace_plane_wave(i, {head.data + (i * left.size() + l) * n_right, {n_left, n_right}});
    const double made = now_s();
    use(weight, report.real);
    report.transform_seconds += made - start;
    report.product_seconds += now_s() - made;
  }
  return report;
}

class CpuChiSum final : public ChiSum {
 public:
  CpuChiSum(const ChiShape& shape, CpuPairProductKernels& pair_products)
      : shape_(shape),
        pair_products_(pair_products),
        chi_(static_cast<std::size_t>(shape.static_size())),
        further_(static_cast<std::size_t>(shape.size() - shape.static_size())) {}

  void add(const PairBlock& block, View<const double, 2> weight) override {
    const std::vector<Cplx>& products = dynamic_cast<const CpuPairBlock&>(block).values();
    const std::int64_t n_g = block.n_g();
    const double sign = sign_of(weight);
    std::vector<Cplx> scaled(products.size());
    for (std::int64_t p = 0; p < block.n_pairs(); ++p) {
      const double root = std::sqrt(std::abs(weight.data[p]));
      for (std::int64_t g = 0; g < n_g; ++g)
        scaled[static_cast<std::size_t>(p * n_g + g)] =
            root * products[static_cast<std::size_t>(p * n_g + g)];
    }
    const ThreadedBlas threads(4.0 * static_cast<double>(n_g * n_g) *
                               static_cast<double>(block.n_pairs()));
    cblas_zherk(CblasRowMajor, CblasUpper, CblasConjTrans, static_cast<int>(n_g),
                static_cast<int>(block.n_pairs()), sign, scaled.data(), static_cast<int>(n_g), 1.0,
                chi_.data(), static_cast<int>(n_g));
  }

  void add_at_frequencies(const PairBlock& block, View<const Cplx, 3> weight) override {
    const std::vector<Cplx>& products = dynamic_cast<const CpuPairBlock&>(block).values();
    const std::int64_t n_g = block.n_g(), n_pairs = block.n_pairs();
    std::vector<Cplx> scaled(products.size());
    const ThreadedBlas threads(8.0 * static_cast<double>(n_g * n_g) * static_cast<double>(n_pairs));
    for (std::int64_t i = 0; i < weight.extent[0]; ++i) {
      const Cplx* w = weight.data + i * n_pairs;
      for (std::int64_t p = 0; p < n_pairs; ++p)
        for (std::int64_t g = 0; g < n_g; ++g)
          scaled[static_cast<std::size_t>(p * n_g + g)] =
              w[p] * products[static_cast<std::size_t>(p * n_g + g)];
      cblas_zgemm(CblasRowMajor, CblasConjTrans, CblasNoTrans, static_cast<int>(n_g),
                  static_cast<int>(n_g), static_cast<int>(n_pairs), &kOne, products.data(),
                  static_cast<int>(n_g), scaled.data(), static_cast<int>(n_g), &kOne,
                  further_.data() + i * n_g * n_g, static_cast<int>(n_g));
    }
  }

  PairsReport add_pairs(const Pairs& pairs, const PairsOptions& options) override {
    return for_each_block(pairs, options, pair_products_, block_,
                          [&](View<const double, 2> weight, bool real) {
                            if (real)
                              add_real(weight);
                            else
                              add(block_, weight);
                          });
  }

  std::unique_ptr<PartialChi> finish() override {
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < real_.size(); ++i) chi_[i] += real_[i];
    chi_.insert(chi_.end(), further_.begin(), further_.end());
    auto taken = std::make_unique<HostChi>(shape_, std::move(chi_));
    chi_ = {};
    further_ = {};
    real_ = {};
    return taken;
  }

 private:
  /// Runs add() for a block without imaginary parts.
  void add_real(View<const double, 2> weight) {
    const double sign = sign_of(weight);
    const std::int64_t n_g = block_.n_g();
    std::vector<double> scaled(block_.values().size());
    for (std::int64_t p = 0; p < block_.n_pairs(); ++p) {
      const double root = std::sqrt(std::abs(weight.data[p]));
      for (std::int64_t g = 0; g < n_g; ++g) {
        const auto at = static_cast<std::size_t>(p * n_g + g);
        scaled[at] = root * block_.values()[at].real();
      }
    }
    if (real_.empty()) real_.assign(chi_.size(), 0.0);
    const int n = static_cast<int>(n_g);
    const ThreadedBlas threads(static_cast<double>(n_g * n_g) *
                               static_cast<double>(block_.n_pairs()));
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, n, static_cast<int>(block_.n_pairs()), sign,
                scaled.data(), n, 1.0, real_.data(), n);
  }

  ChiShape shape_;
  CpuPairProductKernels& pair_products_;
  std::vector<Cplx> chi_, further_;  ///< χ(0), upper triangle; χ(ω_i)
  std::vector<double> real_;         ///< upper triangle of terms added in real arithmetic, or empty
  CpuPairBlock block_;               ///< used by add_pairs
};

/// Adds sign Σ_p A*_pG A_pG' of products √|w| M to the rectangle of one slice.
template <typename T>
void add_product(CpuDenseKernels& dense, double sign, const ElementRows& rows, std::int64_t n_g,
                 const std::vector<T>& scaled, T* to) {
  dense.add_adjoint_product(
      AdjointProduct<T>{.rows = rows.size(),
                        .columns = n_g - rows.begin,
                        .depth = static_cast<std::int64_t>(scaled.size()) / n_g,
                        .alpha = sign,
                        .a = scaled.data() + rows.begin,
                        .a_stride = n_g,
                        .b = scaled.data() + rows.begin,
                        .b_stride = n_g,
                        .c = to,
                        .c_stride = n_g - rows.begin});
}

/// Sums slices of χ(0) in host memory. Each slice is a rectangle of its rows and of the columns
/// G' ≥ its first row.
class CpuSlicedChiSum final : public SlicedChiSum {
 public:
  CpuSlicedChiSum(std::int64_t n, const std::vector<ElementRows>& slices,
                  CpuPairProductKernels& pair_products)
      : n_(n), slices_(slices), pair_products_(pair_products), sums_(slices.size()) {}

  PairsReport add_pairs(const Pairs& pairs, const PairsOptions& options) override {
    return for_each_block(pairs, options, pair_products_, block_,
                          [&](View<const double, 2> weight, bool real) { add(weight, real); });
  }

  std::vector<ChiSlice> finish() override {
    std::vector<ChiSlice> found;
    for (std::size_t s = 0; s < slices_.size(); ++s) found.push_back(taken(slices_[s], sums_[s]));
    sums_ = {};
    return found;
  }

 private:
  /// Holds the sum of the complex terms and the sum of the real terms of one slice. A sum is empty
  /// before its first term.
  struct Sums {
    std::vector<Cplx> complex;
    std::vector<double> real;
  };

  void add(View<const double, 2> weight, bool real) {
    const double sign = sign_of(weight);
    std::vector<double> root(static_cast<std::size_t>(block_.n_pairs()));
    for (std::size_t p = 0; p < root.size(); ++p) root[p] = std::sqrt(std::abs(weight.data[p]));
    const auto n = static_cast<std::size_t>(n_);
    const std::vector<Cplx>& products = block_.values();
    std::vector<double> scaled_real(real ? products.size() : 0);
    std::vector<Cplx> scaled(real ? 0 : products.size());
    for (std::size_t i = 0; i < scaled_real.size(); ++i)
      scaled_real[i] = root[i / n] * products[i].real();
    for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] = root[i / n] * products[i];
    for (std::size_t s = 0; s < slices_.size(); ++s) {
      const ElementRows& rows = slices_[s];
      const auto size = static_cast<std::size_t>(rows.size() * (n_ - rows.begin));
      if (real) {
        sums_[s].real.resize(size);
        add_product(dense_, sign, rows, n_, scaled_real, sums_[s].real.data());
      } else {
        sums_[s].complex.resize(size);
        add_product(dense_, sign, rows, n_, scaled, sums_[s].complex.data());
      }
    }
  }

  ChiSlice taken(const ElementRows& rows, const Sums& sums) const {
    const bool real = sums.complex.empty();
    const std::int64_t columns = n_ - rows.begin, step = real ? 1 : 2,
                       size = triangle_size(columns) - triangle_size(n_ - rows.end);
    ChiSlice slice{rows, real, UnsetVector<double>(static_cast<std::size_t>(step * size))};
    double* to = slice.values.data();
    for (std::int64_t g = 0; g < rows.size(); ++g)
      for (std::int64_t h = g; h < columns; ++h) {
        const auto at = static_cast<std::size_t>(g * columns + h);
        const double in_real = sums.real.empty() ? 0.0 : sums.real[at];
        *to++ = in_real + (real ? 0.0 : sums.complex[at].real());
        if (!real) *to++ = sums.complex[at].imag();
      }
    return slice;
  }

  std::int64_t n_;
  std::vector<ElementRows> slices_;
  CpuPairProductKernels& pair_products_;
  CpuDenseKernels dense_;
  std::vector<Sums> sums_;  ///< sums of each slice
  CpuPairBlock block_;
};

}  // namespace

std::unique_ptr<ChiSum> CpuPolarizabilityKernels::start(const ChiShape& shape) {
  return std::make_unique<CpuChiSum>(shape, pair_products_);
}

std::unique_ptr<SlicedChiSum> CpuPolarizabilityKernels::start_slices(
    std::int64_t n, const std::vector<ElementRows>& slices) {
  return std::make_unique<CpuSlicedChiSum>(n, slices, pair_products_);
}

std::unique_ptr<PartialChi> CpuPolarizabilityKernels::load(const ChiShape& shape,
                                                           const Cplx* values) {
  return std::make_unique<HostChi>(shape, std::vector<Cplx>(values, values + shape.size()));
}

std::unique_ptr<PartialChi> CpuPolarizabilityKernels::load_triangle(std::int64_t n,
                                                                    const double* values) {
  std::vector<Cplx> whole(static_cast<std::size_t>(n * n));
#pragma omp parallel for schedule(static, 16)
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = g; h < n; ++h)
      whole[static_cast<std::size_t>(g * n + h)] = values[g * n - g * (g + 1) / 2 + h];
  return std::make_unique<HostChi>(ChiShape{.n_static = n}, std::move(whole));
}

namespace {

/// Writes ε = 1 − v^½ χ v^½. @param triangle  only the elements G ≤ G' of χ are set; the
/// others follow by Hermiticity
void make_dielectric(const Cplx* chi, bool triangle, const PolarizabilityKernels::Inversion& how,
                     View<Cplx, 2> epsilon) {
  const std::int64_t n = epsilon.extent[0];
  const auto& v = how.coulomb;
#pragma omp parallel for schedule(static)
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = 0; h < n; ++h) {
      const Cplx element = !triangle || g <= h ? chi[g * n + h] : std::conj(chi[h * n + g]);
      epsilon(g, h) = (g == h ? 1.0 : 0.0) - dielectric_factor(v(g), v(h), how.positive) * element;
    }
}

}  // namespace

void CpuPolarizabilityKernels::invert_dielectric(const PartialChi& chi, std::int64_t frequency,
                                                 const Inversion& how, View<Cplx, 2> inverse) {
  const auto& values = dynamic_cast<const HostChi&>(chi);
  const std::int64_t n = inverse.extent[0];
  const auto& v = how.coulomb;
  make_dielectric(values.values() + frequency * n * n, frequency == 0, how, inverse);
  if (how.definite)
    dense_.invert_positive_definite(inverse);
  else
    dense_.invert_general(inverse);
#pragma omp parallel for schedule(static)
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = 0; h < n; ++h) inverse(g, h) *= inverse_factor(v(g), v(h), how.positive);
}

std::unique_ptr<const DielectricInverse> CpuPolarizabilityKernels::invert_definite(
    std::unique_ptr<PartialChi> chi, View<const double, 1> coulomb) {
  const std::int64_t n = coulomb.extent[0];
  UnsetVector<Cplx> values(static_cast<std::size_t>(n * n));
  const auto matrix = view<Cplx>(values, n, n);
  make_dielectric(dynamic_cast<const HostChi&>(*chi).values(), true, {.coulomb = coulomb}, matrix);
  chi = {};
  dense_.invert_positive_definite(matrix);
  return std::make_unique<const HostInverse>(n, std::move(values));
}

}  // namespace quasi::gw
