#include "workers/gw/kernels/pole_sums/offdiagonal/gpp_offdiagonal_cpu.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/backend/team/blas_threads.hpp"
#include "workers/gw/kernels/dense/zgemm_cpu.hpp"
#include "workers/gw/kernels/pole_sums/offdiagonal/offdiagonal_plan.hpp"
#include "workers/gw/physics/plasmon_pole.hpp"

namespace quasi::gw {
namespace {

constexpr Cplx kOne{1.0, 0.0};

/// Makes p_GG' = A_GG' factor(ω̃_GG').
template <typename Factor>
void make_matrix(const PlasmonPoleView& model, bool folded, Factor factor, std::vector<Cplx>& p) {
  const std::int64_t n_g = model.pole_ry.extent[0];
#pragma omp parallel for schedule(static)
  for (std::int64_t g = 0; g < n_g; ++g) {
    const Cplx* strength = model.strength.data + g * n_g;
    const double* pole = model.pole_ry.data + g * n_g;
    Cplx* to = p.data() + g * n_g;
#pragma omp simd
    for (std::int64_t h = folded ? g : 0; h < n_g; ++h) to[h] = factor(pole[h]) * strength[h];
    if (!folded) continue;
    std::fill(to, to + g, Cplx());
    to[g] *= folded_weight(g, g);
  }
}

/// Columns of T that are made at a time where P is folded. They need the rows of P up to their last
/// column only.
constexpr std::int64_t kFoldedColumns = 64;

/// Multiplies T = M P, [m][n_g].
/// @return the flops of the product
double multiply(std::int64_t m, std::int64_t n_g, bool folded, ConstMatrix a, const Cplx* p,
                Cplx* t) {
  const std::int64_t width = folded ? kFoldedColumns : n_g;
  double flops = 0.0;
  for (std::int64_t begin = 0; begin < n_g; begin += width) {
    const std::int64_t end = std::min(n_g, begin + width), depth = folded ? end : n_g;
    zgemm({CblasNoTrans, m, end - begin, depth}, a, {p + begin, n_g}, {t + begin, n_g});
    flops += 8.0 * static_cast<double>(m * (end - begin)) * static_cast<double>(depth);
  }
  return flops;
}

/// S of all energies: Σ itself or, for a Hermitian model, the half of Σ = S + S†.
class OffDiagonalSum {
 public:
  OffDiagonalSum(const PlasmonPoleView& model, const PoleRules& rules, const ProductSets& sets,
                 const OffDiagonalTerms& terms, View<Cplx, 3> sigma)
      : model_(model),
        rules_(rules),
        products_(sets.bra),
        ket_(sets.ket),
        terms_(terms),
        sigma_(sigma),
        n_left_(sets.bra.extent[0]),
        n_m_(sets.ket.extent[0]),
        n_right_(sets.bra.extent[1]),
        n_g_(sets.bra.extent[2]),
        p_(static_cast<std::size_t>(n_g_ * n_g_)),
        t_(static_cast<std::size_t>(sets.bra.size())),
        half_(static_cast<std::size_t>(model.hermitian ? sigma.size() : 0)) {}

  /// Adds the pairs (n, E) of one run by the two products.
  void add_direct(const EnergyRun& run) {
    const std::int64_t row = n_right_ * n_g_;  // from one outer state to the next
    for (std::int64_t e = run.begin; e < run.end; ++e) {
      const double x = terms_.energies_ry(e) - terms_.band_ry(run.band);
      const double f = terms_.occupation(run.band);
      make_matrix(
          model_, model_.hermitian,
          [=, this](double pole) {
            return pole_factor(x, pole, f, rules_.half_width_ry, rules_.max_ratio,
                               rules_.screened_exchange_cut);
          },
          p_);
      const Cplx* m = products_.data + run.band * n_g_;
      flops_ += multiply(n_left_, n_g_, model_.hermitian, {m, row}, p_.data(), t_.data()) +
                flops_of_second();
      zgemm({CblasConjTrans, n_left_, n_m_, n_g_, terms_.weight, kOne}, {t_.data(), n_g_},
            {ket_.data + run.band * n_g_, row}, {sum() + e * n_left_ * n_m_, n_m_});
    }
  }

  /// Adds all separable pairs, one term after another.
  void add_separable(const OffDiagonalPlan& plan) {
    const std::int64_t row = n_right_ * n_g_, n_energies = sigma_.extent[0];
    std::vector<Cplx> d(
        static_cast<std::size_t>(plan.pole.size() > 0 ? n_right_ * n_left_ * n_m_ : 0));
    for (std::int64_t k = 0; k < plan.pole.size(); ++k) {
      const double node = plan.pole.node[static_cast<std::size_t>(k)];
      const double constant = plan.pole.constant;
      const SeparableFamily family = plan.pole.family;
      make_matrix(
          model_, model_.hermitian,
          [=](double pole) { return separable_term(family, node, constant, pole, kStaticPole_ry); },
          p_);
      flops_ += multiply(n_left_ * n_right_, n_g_, model_.hermitian, {products_.data, n_g_},
                         p_.data(), t_.data()) +
                static_cast<double>(n_right_) * flops_of_second();
      for (std::int64_t n = 0; n < n_right_; ++n)
        zgemm({CblasConjTrans, n_left_, n_m_, n_g_, terms_.weight}, {t_.data() + n * n_g_, row},
              {ket_.data + n * n_g_, row}, {d.data() + n * n_left_ * n_m_, n_m_});
      // Σ[e] += Σ_n c[e][n] D[n] has real coefficients: one product serves real and imaginary
      // parts of all (l, m).
      const std::int64_t width = 2 * n_left_ * n_m_;
      const ThreadedBlas threads(2.0 * static_cast<double>(n_energies * width) *
                                 static_cast<double>(n_right_));
      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(n_energies),
                  static_cast<int>(width), static_cast<int>(n_right_), 1.0,
                  plan.coefficient.data() + k * n_energies * n_right_, static_cast<int>(n_right_),
                  reinterpret_cast<const double*>(d.data()), static_cast<int>(width), 1.0,
                  reinterpret_cast<double*>(sum()), static_cast<int>(width));
    }
  }

  /// @return the flops of all products
  double finish() {
    if (model_.hermitian)
      for (std::int64_t e = 0; e < sigma_.extent[0]; ++e)
        for (std::int64_t l = 0; l < n_left_; ++l)
          for (std::int64_t m = 0; m < n_left_; ++m) {
            const Cplx* of_energy = sum() + e * n_left_ * n_left_;
            sigma_(e, l, m) += of_energy[l * n_left_ + m] + std::conj(of_energy[m * n_left_ + l]);
          }
    return flops_;
  }

 private:
  Cplx* sum() { return model_.hermitian ? half_.data() : sigma_.data; }
  double flops_of_second() const {
    return 8.0 * static_cast<double>(n_left_ * n_m_) * static_cast<double>(n_g_);
  }

  const PlasmonPoleView& model_;
  const PoleRules& rules_;
  View<const Cplx, 3> products_, ket_;
  const OffDiagonalTerms& terms_;
  View<Cplx, 3> sigma_;
  std::int64_t n_left_, n_m_, n_right_, n_g_;
  std::vector<Cplx> p_, t_, half_;
  double flops_ = 0.0;
};

}  // namespace

OffDiagonalReport add_gpp_offdiagonal_cpu(const PlasmonPoleView& model, const PoleRules& rules,
                                          const ProductSets& sets, const OffDiagonalTerms& terms,
                                          const OffDiagonalOptions& options, View<Cplx, 3> sigma) {
  if (options.products != OffDiagonalOptions::Products::kNative)
    throw InvalidInput(
        "three-multiplication and emulated products exist on CUDA devices only; ask for "
        "native products");
  OffDiagonalPlan plan = plan_offdiagonal(terms, rules, options, finite_poles(model));
  fit_separable_pairs(plan, terms, rules, options);
  OffDiagonalSum sum(model, rules, sets, terms, sigma);
  for (const EnergyRun& run : plan.direct) sum.add_direct(run);
  sum.add_separable(plan);
  return {.pairs = plan.pairs,
          .direct_pairs = plan.direct_pairs,
          .terms = plan.pole.size(),
          .fit_error_relative = plan.pole.error,
          .fit_seconds = plan.fit_seconds,
          .zgemm_flops = sum.finish(),
          .hermitian = model.hermitian};
}

}  // namespace quasi::gw
