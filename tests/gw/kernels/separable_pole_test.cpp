#include "workers/gw/kernels/pole_sums/offdiagonal/separable_pole.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "workers/backend/error.hpp"

namespace {

using namespace quasi;
using gw::PoleRange;
using gw::SeparableFamily;

/// Largest |Σ_k c_k b_k − ω̃/(|x| + ω̃)| over a grid of its own, static element included.
double largest_error(const gw::SeparablePole& fit, const PoleRange& range) {
  double worst = 0.0;
  for (int i = 0; i <= 97; ++i) {
    const double x = range.x_min_ry + (range.x_max_ry - range.x_min_ry) * std::pow(i / 97.0, 3);
    const auto c = fit.coefficients(x);
    for (int j = 0; j <= 98; ++j) {
      const double pole =
          j == 98 ? 1e18
                  : range.pole_min_ry * std::pow(range.pole_max_ry / range.pole_min_ry, j / 97.0);
      double sum = -pole / (x + pole);
      for (std::size_t k = 0; k < c.size(); ++k)
        sum += c[k] * pole * gw::separable_term(fit.family, fit.node[k], fit.constant, pole, 1e18);
      worst = std::max(worst, std::abs(sum));
    }
  }
  return worst;
}

TEST(SeparablePole, BothFamiliesMeetTheirTolerance) {
  for (const PoleRange& range :
       {PoleRange{0.0, 30.0, 0.46, 93.0}, {0.3, 4.0, 0.5, 20.0}, {1.0, 1.0, 2.0, 2.0}})
    for (const auto& [family, tolerance] : {std::pair{SeparableFamily::kExponential, 1e-4},
                                            {SeparableFamily::kExponential, 1e-7},
                                            {SeparableFamily::kRational, 1e-6},
                                            {SeparableFamily::kRational, 1e-9}}) {
      const auto fit = gw::fit_separable_pole(family, range, tolerance);
      EXPECT_LE(fit.error, tolerance);
      EXPECT_LE(largest_error(fit, range), 1.05 * tolerance) << "terms " << fit.size();
    }
}

// Fits to 1/y of this quality are known from the literature on Laplace transforms: 1e-4 with about
// six terms for a ratio of 30. The constant is worth half a term: 12 exponentials without one reach
// 1e-6 for a ratio of 226.
TEST(SeparablePole, ExponentialFitsAreEconomical) {
  EXPECT_LE(gw::fit_reciprocal(30.0, 6).error_relative, 1e-4);
  EXPECT_LE(gw::fit_reciprocal(30.0, 8).error_relative, 1e-5);
  EXPECT_LE(gw::fit_reciprocal(226.0, 11).error_relative, 1e-6);
}

// The best fits gain exp(−π²/ln 4R) a term; these follow it from ratios of 3 to 1000.
TEST(SeparablePole, ExponentialFitsGainTheKnownFactorATerm) {
  for (const auto& [ratio, terms] : {std::pair{3.0, 5}, {11.0, 8}, {60.0, 10}, {1000.0, 10}}) {
    const double first = gw::fit_reciprocal(ratio, 3).error_relative,
                 last = gw::fit_reciprocal(ratio, terms).error_relative;
    const double gain = std::exp(-M_PI * M_PI / std::log(4.0 * ratio));
    EXPECT_LT(last, 5.0 * first * std::pow(gain, terms - 3)) << ratio;
  }
}

// The interpolant is exact at its own reference values.
TEST(SeparablePole, RationalFormIsExactAtItsNodes) {
  const auto fit = gw::fit_separable_pole(SeparableFamily::kRational, {0.1, 20.0, 0.5, 50.0}, 1e-8);
  for (std::size_t k = 0; k < fit.node.size(); ++k) {
    const auto c = fit.coefficients(fit.node[k]);
    for (std::size_t m = 0; m < c.size(); ++m) EXPECT_DOUBLE_EQ(c[m], m == k ? 1.0 : 0.0);
  }
}

TEST(SeparablePole, RefusesARangeWithAPole) {
  EXPECT_THROW(gw::fit_separable_pole(SeparableFamily::kRational, {0.0, 1.0, 0.0, 1.0}, 1e-6),
               InvalidInput);
  EXPECT_THROW(gw::fit_separable_pole(SeparableFamily::kExponential, {-1.0, 1.0, 0.5, 1.0}, 1e-6),
               InvalidInput);
}

}  // namespace
