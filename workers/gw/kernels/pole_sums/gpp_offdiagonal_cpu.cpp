#include "workers/gw/kernels/pole_sums/gpp_offdiagonal_cpu.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/gw/kernels/dense/zgemm_cpu.hpp"
#include "workers/gw/kernels/pole_sums/offdiagonal_plan.hpp"
#include "workers/gw/physics/plasmon_pole.hpp"

namespace quasi::gw {
namespace {

constexpr Cplx kOne{1.0, 0.0};
constexpr Cplx kZero{0.0, 0.0};

/// p_GG' = A_GG' factor(ω̃_GG').
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

/// Columns of T made at once where P is folded: they need the rows of P up to their own end alone.
constexpr std::int64_t kFoldedColumns = 64;

/// T[m][n_g] = M P and the flops of it; rows of M and T are lda apart.
double multiply(std::int64_t m, std::int64_t n_g, bool folded, const Cplx* a, std::int64_t lda,
                const Cplx* p, Cplx* t, std::int64_t ldt) {
  const std::int64_t width = folded ? kFoldedColumns : n_g;
  double flops = 0.0;
  for (std::int64_t begin = 0; begin < n_g; begin += width) {
    const std::int64_t end = std::min(n_g, begin + width), depth = folded ? end : n_g;
    zgemm(CblasNoTrans, m, end - begin, depth, kOne, a, lda, p + begin, n_g, kZero, t + begin, ldt);
    flops += 8.0 * static_cast<double>(m * (end - begin)) * static_cast<double>(depth);
  }
  return flops;
}

}  // namespace

GwKernels::OffDiagonalReport add_gpp_offdiagonal_cpu(
    const PlasmonPoleView& model, bool folded, const PoleRules& rules, View<const Cplx, 3> products,
    View<const double, 1> energies_ry, View<const double, 1> band_ry,
    View<const double, 1> occupation, double weight, const GwKernels::OffDiagonalOptions& options,
    View<Cplx, 3> sigma) {
  if (options.products != GwKernels::OffDiagonalOptions::Products::kNative)
    throw InvalidInput(
        "three-multiplication and emulated products exist on CUDA devices only; ask for "
        "native products");
  const std::int64_t n_left = products.extent[0];
  const std::int64_t n_right = products.extent[1];
  const std::int64_t n_g = products.extent[2];
  const std::int64_t n_energies = energies_ry.extent[0];
  const std::int64_t row = n_right * n_g;  // from one outer state to the next
  const FinitePoles poles = finite_poles(model);
  OffDiagonalPlan plan = plan_offdiagonal(energies_ry, band_ry, occupation, rules, options,
                                          poles.min_ry, poles.max_ry);
  fit_separable_pairs(plan, energies_ry, band_ry, occupation, rules, options);
  GwKernels::OffDiagonalReport report{.pairs = plan.pairs,
                                      .direct_pairs = plan.direct_pairs,
                                      .terms = plan.pole.size(),
                                      .fit_error_relative = plan.pole.error,
                                      .fit_seconds = plan.fit_seconds,
                                      .hermitian = folded};
  std::vector<Cplx> p(static_cast<std::size_t>(n_g * n_g));
  std::vector<Cplx> t(static_cast<std::size_t>(n_left * row));
  // S of a folded model, to which its adjoint is added at the end.
  std::vector<Cplx> half(static_cast<std::size_t>(folded ? sigma.size() : 0));
  Cplx* const sum = folded ? half.data() : sigma.data;
  const double flops_second = 8.0 * static_cast<double>(n_left * n_left) * static_cast<double>(n_g);

  for (const EnergyRun& run : plan.direct)
    for (std::int64_t e = run.begin; e < run.end; ++e) {
      const double x = energies_ry(e) - band_ry(run.band);
      const double f = occupation(run.band);
      make_matrix(
          model, folded,
          [=](double pole) {
            return pole_factor(x, pole, f, rules.half_width_ry, rules.max_ratio,
                               rules.screened_exchange_cut);
          },
          p);
      const Cplx* m = products.data + run.band * n_g;
      report.zgemm_flops +=
          multiply(n_left, n_g, folded, m, row, p.data(), t.data(), n_g) + flops_second;
      zgemm(CblasConjTrans, n_left, n_left, n_g, weight, t.data(), n_g, m, row, kOne,
            sum + e * n_left * n_left, n_left);
    }

  std::vector<Cplx> d(
      static_cast<std::size_t>(plan.pole.size() > 0 ? n_right * n_left * n_left : 0));
  for (std::int64_t k = 0; k < plan.pole.size(); ++k) {
    const double node = plan.pole.node[static_cast<std::size_t>(k)], constant = plan.pole.constant;
    const SeparableFamily family = plan.pole.family;
    make_matrix(
        model, folded,
        [=](double pole) { return separable_term(family, node, constant, pole, kStaticPole_ry); },
        p);
    report.zgemm_flops +=
        multiply(n_left * n_right, n_g, folded, products.data, n_g, p.data(), t.data(), n_g) +
        static_cast<double>(n_right) * flops_second;
    for (std::int64_t n = 0; n < n_right; ++n)
      zgemm(CblasConjTrans, n_left, n_left, n_g, weight, t.data() + n * n_g, row,
            products.data + n * n_g, row, kZero, d.data() + n * n_left * n_left, n_left);
    // Both parts of all (l, m) at once: Σ[e] += Σ_n c[e][n] D[n], real coefficients.
    const std::int64_t width = 2 * n_left * n_left;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(n_energies),
                static_cast<int>(width), static_cast<int>(n_right), 1.0,
                plan.coefficient.data() + k * n_energies * n_right, static_cast<int>(n_right),
                reinterpret_cast<const double*>(d.data()), static_cast<int>(width), 1.0,
                reinterpret_cast<double*>(sum), static_cast<int>(width));
  }
  if (folded)
    for (std::int64_t e = 0; e < n_energies; ++e)
      for (std::int64_t l = 0; l < n_left; ++l)
        for (std::int64_t m = 0; m < n_left; ++m) {
          const Cplx* of_energy = sum + e * n_left * n_left;
          sigma(e, l, m) += of_energy[l * n_left + m] + std::conj(of_energy[m * n_left + l]);
        }
  return report;
}

}  // namespace quasi::gw
