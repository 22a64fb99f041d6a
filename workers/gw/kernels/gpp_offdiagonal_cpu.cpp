#include "workers/gw/kernels/gpp_offdiagonal_cpu.hpp"

#include <cblas.h>

#include <cmath>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/gw/kernels/offdiagonal_plan.hpp"
#include "workers/gw/physics/plasmon_pole.hpp"

namespace quasi::gw {
namespace {

constexpr Cplx kOne{1.0, 0.0};
constexpr Cplx kZero{0.0, 0.0};

/// C[m][n] = alpha A[m][k]·B + beta C, or with B[n][k] conjugate transposed; row-major.
void zgemm(CBLAS_TRANSPOSE transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, Cplx alpha,
           const Cplx* a, std::int64_t lda, const Cplx* b, std::int64_t ldb, Cplx beta, Cplx* c,
           std::int64_t ldc) {
  cblas_zgemm(CblasRowMajor, CblasNoTrans, transpose_b, static_cast<int>(m), static_cast<int>(n),
              static_cast<int>(k), &alpha, a, static_cast<int>(lda), b, static_cast<int>(ldb), &beta,
              c, static_cast<int>(ldc));
}

/// p_GG' = A_GG' factor(ω̃_GG').
template <typename Factor>
void make_matrix(const PlasmonPoleView& model, Factor factor, std::vector<Cplx>& p) {
  const std::int64_t size = model.pole_ry.size();
  const Cplx* strength = model.strength.data;
  const double* pole = model.pole_ry.data;
#pragma omp parallel for simd schedule(static)
  for (std::int64_t i = 0; i < size; ++i)
    p[static_cast<std::size_t>(i)] = factor(pole[i]) * strength[i];
}

}  // namespace

GwKernels::OffDiagonalReport add_gpp_offdiagonal_cpu(
    const PlasmonPoleView& model, const PoleRules& rules, View<const Cplx, 3> products,
    View<const double, 1> energies_ry, View<const double, 1> band_ry,
    View<const double, 1> occupation, double weight, const GwKernels::OffDiagonalOptions& options,
    View<Cplx, 3> sigma) {
  if (options.products != GwKernels::OffDiagonalOptions::Products::kNative)
    throw InvalidInput("three-multiplication and emulated products exist on CUDA devices only; ask for "
                       "native products");
  const std::int64_t n_left = products.extent[0];
  const std::int64_t n_right = products.extent[1];
  const std::int64_t n_g = products.extent[2];
  const std::int64_t n_energies = energies_ry.extent[0];
  const std::int64_t row = n_right * n_g;  // from one outer state to the next
  const FinitePoles poles = finite_poles(model);
  const OffDiagonalPlan plan = plan_offdiagonal(energies_ry, band_ry, occupation, rules, options,
                                                poles.min_ry, poles.max_ry);
  GwKernels::OffDiagonalReport report{.pairs = plan.pairs,
                                      .direct_pairs = plan.direct_pairs,
                                      .terms = plan.pole.size(),
                                      .fit_error_relative = plan.pole.error};
  std::vector<Cplx> p(static_cast<std::size_t>(n_g * n_g));
  std::vector<Cplx> t(static_cast<std::size_t>(n_left * row));
  const double flops_first = 8.0 * static_cast<double>(n_left * n_g) * static_cast<double>(n_g);
  const double flops_second = 8.0 * static_cast<double>(n_left * n_left) * static_cast<double>(n_g);

  for (const EnergyRun& run : plan.direct)
    for (std::int64_t e = run.begin; e < run.end; ++e) {
      const double x = energies_ry(e) - band_ry(run.band);
      const double f = occupation(run.band);
      make_matrix(model, [=](double pole) {
        return pole_factor(x, pole, f, rules.half_width_ry, rules.max_ratio,
                           rules.screened_exchange_cut);
      }, p);
      const Cplx* m = products.data + run.band * n_g;
      zgemm(CblasNoTrans, n_left, n_g, n_g, kOne, m, row, p.data(), n_g, kZero, t.data(), n_g);
      zgemm(CblasConjTrans, n_left, n_left, n_g, weight, t.data(), n_g, m, row, kOne,
            &sigma(e, 0, 0), n_left);
      report.zgemm_flops += flops_first + flops_second;
    }

  std::vector<Cplx> d(static_cast<std::size_t>(plan.pole.size() > 0 ? n_right * n_left * n_left : 0));
  for (std::int64_t k = 0; k < plan.pole.size(); ++k) {
    const double node = plan.pole.node[static_cast<std::size_t>(k)];
    const SeparableFamily family = plan.pole.family;
    make_matrix(model, [=](double pole) {
      return separable_term(family, node, pole, kStaticPole_ry);
    }, p);
    zgemm(CblasNoTrans, n_left * n_right, n_g, n_g, kOne, products.data, n_g, p.data(), n_g, kZero,
          t.data(), n_g);
    for (std::int64_t n = 0; n < n_right; ++n)
      zgemm(CblasConjTrans, n_left, n_left, n_g, weight, t.data() + n * n_g, row,
            products.data + n * n_g, row, kZero, d.data() + n * n_left * n_left, n_left);
    // Both parts of all (l, m) at once: Σ[e] += Σ_n c[e][n] D[n], real coefficients.
    const std::int64_t width = 2 * n_left * n_left;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(n_energies),
                static_cast<int>(width), static_cast<int>(n_right), 1.0,
                plan.coefficient.data() + k * n_energies * n_right, static_cast<int>(n_right),
                reinterpret_cast<const double*>(d.data()), static_cast<int>(width), 1.0,
                reinterpret_cast<double*>(sigma.data), static_cast<int>(width));
    report.zgemm_flops += static_cast<double>(n_right) * (flops_first + flops_second);
  }
  return report;
}

}  // namespace quasi::gw
