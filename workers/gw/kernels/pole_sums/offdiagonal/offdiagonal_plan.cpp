#include "workers/gw/kernels/pole_sums/offdiagonal/offdiagonal_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/backend/stopwatch.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/pole_groups.hpp"

namespace quasi::gw {

OffDiagonalPlan plan_offdiagonal(const OffDiagonalTerms& terms, const PoleRules& rules,
                                 const OffDiagonalOptions& options, const FinitePoles& poles) {
  const View<const double, 1> energies_ry = terms.energies_ry, band_ry = terms.band_ry,
                              occupation = terms.occupation;
  const std::int64_t n_energies = energies_ry.extent[0];
  const std::int64_t n_bands = band_ry.extent[0];
  OffDiagonalPlan plan;
  plan.pairs = n_energies * n_bands;
  const bool separable = options.method != OffDiagonalOptions::Method::kTwoProducts;
  PoleRange& range = plan.separable;
  range = {.x_min_ry = std::numeric_limits<double>::infinity(),
           .x_max_ry = 0.0,
           .pole_min_ry = poles.min_ry,
           .pole_max_ry = poles.max_ry};
  for (std::int64_t n = 0; n < n_bands; ++n) {
    if (!(occupation(n) >= 0.0 && occupation(n) <= 1.0))
      throw InvalidInput("occupation of band " + std::to_string(n) + " is " +
                         std::to_string(occupation(n)) + "; it must lie in [0, 1]");
    for (std::int64_t e = 0; e < n_energies; ++e) {
      const double x = energies_ry(e) - band_ry(n);
      if (!std::isfinite(x))
        throw InvalidInput("E − E_n of energy " + std::to_string(e) + " and band " +
                           std::to_string(n) + " is not finite");
      if (separable && crosses_no_pole(x, occupation(n), rules)) {
        range.x_min_ry = std::min(range.x_min_ry, std::abs(x));
        range.x_max_ry = std::max(range.x_max_ry, std::abs(x));
        continue;
      }
      ++plan.direct_pairs;
      if (plan.direct.empty() || plan.direct.back().band != n || plan.direct.back().end != e)
        plan.direct.push_back({n, e, e + 1});
      else
        plan.direct.back().end = e + 1;
    }
  }
  return plan;
}

void fit_separable_pairs(OffDiagonalPlan& plan, const OffDiagonalTerms& terms,
                         const PoleRules& rules, const OffDiagonalOptions& options) {
  if (plan.direct_pairs == plan.pairs) return;
  const Stopwatch clock;
  const std::int64_t n_energies = terms.energies_ry.extent[0], n_bands = terms.band_ry.extent[0];
  const auto family = options.method == OffDiagonalOptions::Method::kRationalSums
                          ? SeparableFamily::kRational
                          : SeparableFamily::kExponential;
  plan.pole = fit_separable_pole(family, plan.separable, options.tolerance_relative);
  plan.fit_seconds = clock.seconds();
  plan.coefficient.assign(static_cast<std::size_t>(plan.pole.size() * plan.pairs), 0.0);
  for (std::int64_t n = 0; n < n_bands; ++n)
    for (std::int64_t e = 0; e < n_energies; ++e) {
      const double x = terms.energies_ry(e) - terms.band_ry(n);
      if (!crosses_no_pole(x, terms.occupation(n), rules)) continue;
      const auto c = plan.pole.coefficients(std::abs(x));
      for (std::size_t k = 0; k < c.size(); ++k)
        plan.coefficient[(k * static_cast<std::size_t>(n_energies) + static_cast<std::size_t>(e)) *
                             static_cast<std::size_t>(n_bands) +
                         static_cast<std::size_t>(n)] = terms.occupation(n) == 1.0 ? c[k] : -c[k];
    }
}

FinitePoles finite_poles(const PlasmonPoleView& model) {
  double low = std::numeric_limits<double>::infinity(), high = 0.0;
  const std::int64_t size = model.pole_ry.size();
#pragma omp parallel for schedule(static) reduction(min : low) reduction(max : high)
  for (std::int64_t i = 0; i < size; ++i) {
    const double pole = model.pole_ry.data[i];
    if (model.strength.data[i] == Cplx() || pole >= kStaticPole_ry) continue;
    low = std::min(low, pole);
    high = std::max(high, pole);
  }
  return high > 0.0 ? FinitePoles{low, high} : FinitePoles{};
}

}  // namespace quasi::gw
