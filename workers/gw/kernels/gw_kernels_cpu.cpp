#include <cblas.h>
#include <lapacke.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/gw/kernels/dense/zgemm_cpu.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/kernels/pair_products/pair_products_cpu.hpp"
#include "workers/gw/kernels/pole_sums/gpp_diagonal_cpu.hpp"
#include "workers/gw/kernels/pole_sums/gpp_offdiagonal_cpu.hpp"
#include "workers/gw/kernels/pole_sums/imaginary_poles_cpu.hpp"
#include "workers/gw/physics/dielectric.hpp"

namespace quasi::gw {
namespace {

constexpr Cplx kOne{1.0, 0.0};
constexpr Cplx kZero{0.0, 0.0};

/// Of one q; kernels of one process share it.
struct Poles {
  std::vector<Cplx> strength;
  std::vector<double> pole_ry;
  PolePlanes planes;
  PoleRules rules;
};
struct CpuPoleModel : LoadedPoleModel {
  explicit CpuPoleModel(std::shared_ptr<const Poles> of) : poles(std::move(of)) {}
  std::shared_ptr<const Poles> poles;
};

class CpuGwKernels : public GwKernels {
 public:
  explicit CpuGwKernels(const Device& device) : device_(device) {}
  const Device& device() const override { return device_; }

  void set_box(std::array<int, 3> box) override {
    ++epoch_;
    pairs_.set_box(box);
    products_.clear();
    n_left_ = n_right_ = n_g_ = 0;
  }

  void load_bands(Side side, View<const Cplx, 2> coefficients,
                  View<const std::int32_t, 1> box_index) override {
    pairs_.load_bands(side, coefficients, box_index);
  }

  void load_sphere(View<const std::int32_t, 1> box_index, View<const Cplx, 1> factor) override {
    ++epoch_;
    pairs_.load_sphere(box_index, factor);
  }

  void pair_products(BandRange left, BandRange right) override {
    resize_products(left.size(), right.size(), pairs_.n_sphere());
    pairs_.run(left, right, products_.data());
  }

  void load_pair_products(View<const Cplx, 3> products) override {
    resize_products(products.extent[0], products.extent[1], products.extent[2]);
    std::copy(products.data, products.data + products.size(), products_.begin());
  }
  void read_pair_products(View<Cplx, 3> products) const override {
    std::copy(products_.begin(), products_.end(), products.data);
  }

  void replace_plane_wave(std::int64_t g, View<const Cplx, 2> values) override {
    for (std::int64_t p = 0; p < n_pairs(); ++p)
      products_[static_cast<std::size_t>(p * n_g_ + g)] = values.data[p];
  }

  void project_pair_products(View<const Cplx, 2> basis) override {
    const std::int64_t n_basis = basis.extent[1];
    std::vector<Cplx> projected(static_cast<std::size_t>(n_pairs() * n_basis));
    zgemm(CblasNoTrans, n_pairs(), n_basis, n_g_, kOne, products_.data(), n_g_, basis.data, n_basis,
          kZero, projected.data(), n_basis);
    products_ = std::move(projected);
    n_g_ = n_basis;
  }

  void start_chi(std::int64_t n_g) override {
    chi_.assign(static_cast<std::size_t>(n_g * n_g), kZero);
    chi_real_.clear();
    chi_w_.clear();
    chi_n_ = n_g;
    chi_w_n_ = 0;
  }

  PairsToChiReport add_pairs_to_chi(BandRange left, BandRange right, View<const double, 2> weight,
                                    View<const Cplx, 3> head,
                                    const PairsToChiOptions& options) override {
    const std::int64_t n_right = right.size();
    PairsToChiReport report{.real =
                                options.use_real && pairs_.real() &&
                                std::all_of(head.data, head.data + (head.data ? head.size() : 0),
                                            [](const Cplx& m) { return m.imag() == 0.0; })};
    const std::int64_t rows =
        std::max<std::int64_t>(1, (options.block_bytes > 0 ? options.block_bytes : kBlockBytes) /
                                      (16 * n_right * pairs_.n_sphere()));
    for (std::int64_t l = 0; l < left.size(); l += rows) {
      const std::int64_t n_left = std::min(rows, left.size() - l);
      const double start = now_s();
      pair_products({left.begin + l, left.begin + l + n_left}, right);
      for (std::int64_t i = 0; head.data != nullptr && i < head.extent[0]; ++i)
        replace_plane_wave(i, {head.data + (i * left.size() + l) * n_right, {n_left, n_right}});
      const double made = now_s();
      if (report.real)
        accumulate_real_chi(weight.data + l * n_right);
      else
        accumulate_chi({weight.data + l * n_right, {n_left, n_right}});
      report.transform_seconds += made - start;
      report.product_seconds += now_s() - made;
    }
    return report;
  }

  void accumulate_chi(View<const double, 2> weight) override {
    const double sign = sign_of(weight.data);
    std::vector<Cplx> scaled(products_.size());
    for (std::int64_t p = 0; p < n_pairs(); ++p) {
      const double root = std::sqrt(std::abs(weight.data[p]));
      for (std::int64_t g = 0; g < n_g_; ++g)
        scaled[static_cast<std::size_t>(p * n_g_ + g)] =
            root * products_[static_cast<std::size_t>(p * n_g_ + g)];
    }
    cblas_zherk(CblasRowMajor, CblasUpper, CblasConjTrans, static_cast<int>(n_g_),
                static_cast<int>(n_pairs()), sign, scaled.data(), static_cast<int>(n_g_), 1.0,
                chi_.data(), static_cast<int>(n_g_));
  }

  void start_chi_frequencies(std::int64_t n_frequencies, std::int64_t n) override {
    chi_w_.assign(static_cast<std::size_t>(n_frequencies * n * n), kZero);
    chi_w_n_ = n;
  }

  void accumulate_chi_frequencies(View<const Cplx, 3> weight) override {
    std::vector<Cplx> scaled(products_.size());
    for (std::int64_t i = 0; i < weight.extent[0]; ++i) {
      const Cplx* w = weight.data + i * n_pairs();
      for (std::int64_t p = 0; p < n_pairs(); ++p)
        for (std::int64_t g = 0; g < n_g_; ++g)
          scaled[static_cast<std::size_t>(p * n_g_ + g)] =
              w[p] * products_[static_cast<std::size_t>(p * n_g_ + g)];
      cblas_zgemm(CblasRowMajor, CblasConjTrans, CblasNoTrans, static_cast<int>(n_g_),
                  static_cast<int>(n_g_), static_cast<int>(n_pairs()), &kOne, products_.data(),
                  static_cast<int>(n_g_), scaled.data(), static_cast<int>(n_g_), &kOne,
                  chi_w_.data() + i * n_g_ * n_g_, static_cast<int>(n_g_));
    }
  }

  std::unique_ptr<PartialChi> take_chi() override {
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < chi_real_.size(); ++i) chi_[i] += chi_real_[i];
    const ChiShape shape = chi_shape(chi_n_, chi_w_.size(), chi_w_n_);
    chi_.insert(chi_.end(), chi_w_.begin(), chi_w_.end());
    auto taken = std::make_unique<HostChi>(shape, std::move(chi_));
    chi_ = {};
    chi_w_ = {};
    chi_real_ = {};
    chi_n_ = chi_w_n_ = 0;
    return taken;
  }

  std::unique_ptr<PartialChi> load_chi(const ChiShape& shape, const Cplx* values) override {
    return std::make_unique<HostChi>(shape, std::vector<Cplx>(values, values + shape.size()));
  }

  void invert_dielectric(const PartialChi& chi, std::int64_t frequency, const Inversion& how,
                         View<Cplx, 2> inverse) override {
    const auto& values = dynamic_cast<const HostChi&>(chi);
    const std::int64_t n = inverse.extent[0];
    const Cplx* from = values.values() + frequency * n * n;
    const auto& v = how.coulomb;
#pragma omp parallel for schedule(static)
    for (std::int64_t g = 0; g < n; ++g)
      for (std::int64_t h = 0; h < n; ++h) {
        const Cplx element = frequency > 0 || g <= h ? from[g * n + h] : std::conj(from[h * n + g]);
        inverse(g, h) =
            (g == h ? 1.0 : 0.0) - dielectric_factor(v(g), v(h), how.positive) * element;
      }
    if (how.definite)
      invert_positive_definite(inverse);
    else
      invert_general(inverse);
#pragma omp parallel for schedule(static)
    for (std::int64_t g = 0; g < n; ++g)
      for (std::int64_t h = 0; h < n; ++h)
        inverse(g, h) *= inverse_factor(v(g), v(h), how.positive);
  }

  void load_plasmon_pole(const PlasmonPoleView& model, const PoleRules& rules) override {
    poles_ = std::make_shared<const Poles>(
        Poles{.strength = {model.strength.data, model.strength.data + model.strength.size()},
              .pole_ry = {model.pole_ry.data, model.pole_ry.data + model.pole_ry.size()},
              .planes = make_pole_planes(model),
              .rules = rules});
    imaginary_.clear();
  }
  std::shared_ptr<const LoadedPoleModel> plasmon_pole() const override {
    return std::make_shared<const CpuPoleModel>(poles_);
  }
  void take_plasmon_pole(const std::shared_ptr<const LoadedPoleModel>& model) override {
    poles_ = dynamic_cast<const CpuPoleModel&>(*model).poles;
    imaginary_.clear();
  }
  void load_imaginary_poles(View<const ImaginaryPole, 1> poles) override {
    imaginary_.assign(poles.data, poles.data + poles.size());
  }

  void sigma_diagonal(View<const double, 3> x_ry, View<const double, 1> occupation, double weight,
                      View<Cplx, 2> total, View<Cplx, 2> sx) override {
    const View<const Cplx, 3> products{products_.data(), {n_left_, n_right_, n_g_}};
    const auto wanted = sx.data ? ScreenedExchange::kWanted : ScreenedExchange::kNotWanted;
    for (const PoleGroup& group : make_pole_groups(x_ry, occupation, weight, poles_->rules, wanted))
      add_gpp_diagonal_cpu(poles_->planes, poles_->rules, group, products, total, sx);
  }

  void sigma_diagonal_slope(View<const double, 2> x_ry, View<const double, 1> occupation,
                            double weight, View<Cplx, 1> total, View<Cplx, 1> sx,
                            View<Cplx, 1> slope) override {
    const View<const Cplx, 3> products{products_.data(), {n_left_, n_right_, n_g_}};
    const auto wanted = sx.data ? ScreenedExchange::kWanted : ScreenedExchange::kNotWanted;
    std::vector<Cplx> both(static_cast<std::size_t>(2 * n_left_)), both_sx(both.size());
    add_gpp_diagonal_cpu(poles_->planes, poles_->rules,
                         make_slope_group(x_ry, occupation, weight, poles_->rules, wanted),
                         products, {both.data(), {n_left_, 2}}, {both_sx.data(), {n_left_, 2}});
    for (std::int64_t l = 0; l < n_left_; ++l) {
      total(l) += both[static_cast<std::size_t>(2 * l)];
      slope(l) += both[static_cast<std::size_t>(2 * l + 1)];
      if (sx.data) sx(l) += both_sx[static_cast<std::size_t>(2 * l)];
    }
  }

  void sigma_diagonal_imaginary(View<const double, 3> x_ry, View<const double, 1> occupation,
                                double weight, View<Cplx, 2> total, View<Cplx, 2> sx,
                                View<Cplx, 1> slope) override {
    add_imaginary_poles_cpu(imaginary_, poles_->rules,
                            {products_.data(), {n_left_, n_right_, n_g_}}, x_ry, occupation, weight,
                            total, sx, slope);
  }

  OffDiagonalReport sigma_offdiagonal(View<const double, 1> energies_ry,
                                      View<const double, 1> band_ry,
                                      View<const double, 1> occupation, double weight,
                                      const OffDiagonalOptions& options,
                                      View<Cplx, 3> sigma) override {
    const PlasmonPoleView model{{poles_->strength.data(), {n_g_, n_g_}},
                                {poles_->pole_ry.data(), {n_g_, n_g_}}};
    return add_gpp_offdiagonal_cpu(model, poles_->planes.folded, poles_->rules,
                                   {products_.data(), {n_left_, n_right_, n_g_}}, energies_ry,
                                   band_ry, occupation, weight, options, sigma);
  }

  void weighted_norms(View<const double, 1> v, View<double, 2> sum) override {
#pragma omp parallel for schedule(static)
    for (std::int64_t p = 0; p < n_pairs(); ++p) {
      double norm = 0.0;
      for (std::int64_t g = 0; g < n_g_; ++g)
        norm += std::norm(products_[static_cast<std::size_t>(p * n_g_ + g)]) * v(g);
      sum.data[p] = norm;
    }
  }

  void quadratic_forms(View<const Cplx, 2> matrix, View<Cplx, 2> form) override {
    std::vector<Cplx> right(products_.size());
    zgemm(CblasNoTrans, n_pairs(), n_g_, n_g_, kOne, products_.data(), n_g_, matrix.data, n_g_,
          kZero, right.data(), n_g_);
    for (std::int64_t p = 0; p < n_pairs(); ++p) {
      Cplx sum;
      for (std::int64_t g = 0; g < n_g_; ++g)
        sum += right[static_cast<std::size_t>(p * n_g_ + g)] *
               std::conj(products_[static_cast<std::size_t>(p * n_g_ + g)]);
      form.data[p] = sum;
    }
  }

  void quadratic_form_matrix(View<const Cplx, 2> matrix, View<const double, 2> weight,
                             View<Cplx, 3> sum) override {
    std::vector<Cplx> right(products_.size());
    zgemm(CblasNoTrans, n_pairs(), n_g_, n_g_, kOne, products_.data(), n_g_, matrix.data, n_g_,
          kZero, right.data(), n_g_);
    const std::int64_t k = n_right_ * n_g_;
    if (sum.extent[0] == 1) {
      for (std::int64_t p = 0; p < n_pairs(); ++p)
        for (std::int64_t g = 0; g < n_g_; ++g)
          right[static_cast<std::size_t>(p * n_g_ + g)] *= weight(0, p % n_right_);
      // Rows l of both blocks hold all (n, G) together, so one product sums over both.
      zgemm(CblasConjTrans, n_left_, n_left_, k, kOne, right.data(), k, products_.data(), k, kOne,
            sum.data, n_left_);
      return;
    }
    std::vector<Cplx> of_band(static_cast<std::size_t>(n_left_ * n_left_));
    for (std::int64_t n = 0; n < n_right_; ++n) {
      zgemm(CblasConjTrans, n_left_, n_left_, n_g_, kOne, right.data() + n * n_g_, k,
            products_.data() + n * n_g_, k, kZero, of_band.data(), n_left_);
      for (std::int64_t e = 0; e < sum.extent[0]; ++e) {
        const double w = weight(e, n);
        if (w == 0.0) continue;
        Cplx* to = sum.data + e * n_left_ * n_left_;
        for (std::int64_t i = 0; i < n_left_ * n_left_; ++i)
          to[i] += w * of_band[static_cast<std::size_t>(i)];
      }
    }
  }

  void diagonal_form_matrix(View<const Cplx, 2> diagonal, View<const double, 3> weight,
                            View<Cplx, 3> sum) override {
    const std::int64_t row = n_right_ * n_g_;  // from one l to the next
    std::vector<Cplx> scaled(static_cast<std::size_t>(n_left_ * n_g_)),
        of_band(static_cast<std::size_t>(n_left_ * n_left_));
    for (std::int64_t n = 0; n < n_right_; ++n)
      for (std::int64_t f = 0; f < diagonal.extent[0]; ++f) {
        const Cplx* m = products_.data() + n * n_g_;
        for (std::int64_t l = 0; l < n_left_; ++l)
          for (std::int64_t g = 0; g < n_g_; ++g)
            scaled[static_cast<std::size_t>(l * n_g_ + g)] = m[l * row + g] * diagonal(f, g);
        zgemm(CblasConjTrans, n_left_, n_left_, n_g_, kOne, scaled.data(), n_g_, m, row, kZero,
              of_band.data(), n_left_);
        for (std::int64_t e = 0; e < sum.extent[0]; ++e)
          cblas_daxpy(static_cast<int>(2 * n_left_ * n_left_), weight(n, f, e),
                      reinterpret_cast<const double*>(of_band.data()), 1,
                      reinterpret_cast<double*>(sum.data + e * n_left_ * n_left_), 1);
      }
  }

  void multiply_transposed(View<const Cplx, 2> a, View<const Cplx, 2> b,
                           View<Cplx, 2> product) override {
    const std::int64_t inner = a.extent[1];
    zgemm(CblasTrans, a.extent[0], b.extent[0], inner, kOne, a.data, inner, b.data, inner, kZero,
          product.data, b.extent[0]);
  }

  void invert_positive_definite(View<Cplx, 2> matrix) override {
    const auto n = static_cast<lapack_int>(matrix.extent[0]);
    auto* a = reinterpret_cast<lapack_complex_double*>(matrix.data);
    // Row-major upper is column-major lower of the transpose; conjugation cancels in the end.
    lapack_int info = LAPACKE_zpotrf(LAPACK_COL_MAJOR, 'L', n, a, n);
    if (info > 0)
      throw NotConverged("dielectric matrix of order " + std::to_string(n) +
                         " is not positive definite at its leading minor " + std::to_string(info));
    info = LAPACKE_zpotri(LAPACK_COL_MAJOR, 'L', n, a, n);
    if (info != 0)
      throw NotConverged("inversion of a matrix of order " + std::to_string(n) + " failed");
    for (std::int64_t g = 0; g < n; ++g)
      for (std::int64_t h = 0; h < g; ++h) matrix(g, h) = std::conj(matrix(h, g));
  }

  void invert_general(View<Cplx, 2> matrix) override {
    const auto n = static_cast<lapack_int>(matrix.extent[0]);
    auto* a = reinterpret_cast<lapack_complex_double*>(matrix.data);
    std::vector<lapack_int> pivot(static_cast<std::size_t>(n));
    lapack_int info = LAPACKE_zgetrf(LAPACK_COL_MAJOR, n, n, a, n, pivot.data());
    if (info == 0) info = LAPACKE_zgetri(LAPACK_COL_MAJOR, n, a, n, pivot.data());
    if (info != 0)
      throw NotConverged("dielectric matrix of order " + std::to_string(n) + " is singular");
  }

  void eigen_hermitian(View<const Cplx, 2> matrix, View<double, 1> values,
                       View<Cplx, 2> vectors) override {
    const auto n = static_cast<lapack_int>(matrix.extent[0]);
    const std::int64_t n_lowest = values.extent[0];
    if (std::all_of(matrix.data, matrix.data + matrix.size(),
                    [](const Cplx& h) { return h.imag() == 0.0; })) {
      eigen_symmetric(matrix, values, vectors);
      return;
    }
    // The transpose of a row-major Hermitian matrix is its conjugate: conjugate first, so that
    // LAPACK's column-major view is the matrix itself and its columns are our rows.
    std::vector<Cplx> a(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::conj(matrix.data[i]);
    std::vector<double> all(static_cast<std::size_t>(n));
    const lapack_int info =
        LAPACKE_zheevd(LAPACK_COL_MAJOR, 'V', 'L', n,
                       reinterpret_cast<lapack_complex_double*>(a.data()), n, all.data());
    if (info != 0)
      throw NotConverged("diagonalisation of order " + std::to_string(n) + " failed, LAPACK info " +
                         std::to_string(info));
    std::copy(all.begin(), all.begin() + n_lowest, values.data);
    std::copy(a.begin(), a.begin() + n_lowest * n, vectors.data);
  }

 private:
  static constexpr std::int64_t kBlockBytes = std::int64_t{256}
                                              << 20;  ///< of pair products on their way to χ
  static double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  /// The one sign of the weights of the resident block.
  double sign_of(const double* weight) const {
    double sign = 0.0;
    for (std::int64_t p = 0; p < n_pairs(); ++p) {
      if (weight[p] * sign < 0.0) throw std::logic_error("accumulate_chi: weights of both signs");
      if (weight[p] != 0.0) sign = weight[p] > 0.0 ? 1.0 : -1.0;
    }
    return sign;
  }

  /// accumulate_chi for a block without imaginary parts.
  void accumulate_real_chi(const double* weight) {
    const double sign = sign_of(weight);
    std::vector<double> scaled(products_.size());
    for (std::int64_t p = 0; p < n_pairs(); ++p) {
      const double root = std::sqrt(std::abs(weight[p]));
      for (std::int64_t g = 0; g < n_g_; ++g) {
        const auto at = static_cast<std::size_t>(p * n_g_ + g);
        scaled[at] = root * products_[at].real();
      }
    }
    if (chi_real_.empty()) chi_real_.assign(chi_.size(), 0.0);
    const int n = static_cast<int>(n_g_);
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, n, static_cast<int>(n_pairs()), sign,
                scaled.data(), n, 1.0, chi_real_.data(), n);
  }

  static void eigen_symmetric(View<const Cplx, 2> matrix, View<double, 1> values,
                              View<Cplx, 2> vectors) {
    const auto n = static_cast<lapack_int>(matrix.extent[0]);
    const std::int64_t n_lowest = values.extent[0];
    std::vector<double> a(static_cast<std::size_t>(matrix.size()));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = matrix.data[i].real();
    std::vector<double> all(static_cast<std::size_t>(n));
    const lapack_int info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'L', n, a.data(), n, all.data());
    if (info != 0)
      throw NotConverged("diagonalisation of order " + std::to_string(n) + " failed, LAPACK info " +
                         std::to_string(info));
    std::copy(all.begin(), all.begin() + n_lowest, values.data);
    std::copy(a.begin(), a.begin() + n_lowest * n, vectors.data);
  }

  std::int64_t n_pairs() const { return n_left_ * n_right_; }
  void resize_products(std::int64_t n_left, std::int64_t n_right, std::int64_t n_g) {
    n_left_ = n_left;
    n_right_ = n_right;
    n_g_ = n_g;
    products_.resize(static_cast<std::size_t>(n_left * n_right * n_g));
  }

  Device device_;
  PairProducts pairs_;
  std::vector<Cplx> products_;  ///< [n_left][n_right][n_g]
  std::int64_t n_left_ = 0, n_right_ = 0, n_g_ = 0;
  std::vector<Cplx> chi_, chi_w_;
  std::vector<double>
      chi_real_;  ///< upper triangle of what was added in real arithmetic; empty: nothing was
  std::int64_t chi_n_ = 0, chi_w_n_ = 0;
  std::shared_ptr<const Poles> poles_ = std::make_shared<const Poles>();
  std::vector<ImaginaryPole> imaginary_;
};

}  // namespace

std::unique_ptr<GwKernels> make_gw_kernels_cpu(const Device& device) {
  return std::make_unique<CpuGwKernels>(device);
}

}  // namespace quasi::gw
