// Kernels of the full matrix Σ_lm(E), summed directly and by separable sums. The truth are the
// naive sums (tests/oracle/gw), on every device; sigma_problem.hpp derives the tolerance.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/gw/kernels/sigma_problem.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace {

using namespace quasi;
using gw::Cplx;
using test::absolute_sum;
using test::Bands;
using test::GwSigmaKernels;
using test::RandomPoleModel;
using test::Symmetry;

/// Sizes of a problem of Σ_lm(E), and the symmetry of its model.
struct OffDiagonalCase {
  int n_g;
  std::int64_t n_left, n_bands, n_energies;
  Symmetry symmetry = Symmetry::kNone;
};

/// Naive sums Σ_lm(E_e) of the outer states l, m = 0, every, 2·every, …: [energy][l][m].
std::vector<Cplx> off_diagonal_oracle(const OffDiagonalCase& size, const RandomPoleModel& model,
                                      const Bands& bands, const std::vector<double>& energies,
                                      const std::vector<Cplx>& products, std::int64_t every = 1) {
  std::vector<Cplx> sigma;
  const std::int64_t stride = size.n_bands * size.n_g;
  for (double energy : energies) {
    std::vector<double> x;
    for (double e : bands.energy_ry) x.push_back(energy - e);
    for (std::int64_t l = 0; l < size.n_left; l += every)
      for (std::int64_t m = 0; m < size.n_left; m += every)
        sigma.push_back(oracle::gw::off_diagonal(
            model.oracle, {}, {products.begin() + l * stride, products.begin() + (l + 1) * stride},
            {products.begin() + m * stride, products.begin() + (m + 1) * stride}, x,
            bands.occupation));
  }
  return sigma;
}

/// n energies 0.17 Ry apart, from 0.3 Ry.
std::vector<double> uniform_energies(std::int64_t n) {
  std::vector<double> energies(n);
  for (std::int64_t e = 0; e < n; ++e) energies[e] = 0.3 + 0.17 * static_cast<double>(e);
  return energies;
}

// CUDA uses its fused kernel for 90 and more outer states with occupations of 0 and 1. The sizes
// cut its tiles at every border, and ten steps of plane waves go around its buffers more than
// twice. For a Hermitian model one triangle of P is used.
TEST_P(GwSigmaKernels, OffDiagonalProductsAgreeWithTheNaiveSums) {
  for (OffDiagonalCase size : {OffDiagonalCase{29, 4, 9, 5},
                               {67, 3, 7, 11},
                               {1, 1, 1, 1},
                               {37, 90, 3, 6},
                               {37, 128, 2, 5},
                               {35, 250, 2, 6},
                               {19, 512, 2, 3},
                               {150, 128, 2, 5}})
    for (const Symmetry symmetry : {Symmetry::kNone, Symmetry::kHermitian}) {
      size.symmetry = symmetry;
      SCOPED_TRACE("n_g " + std::to_string(size.n_g) + ", outer states " +
                   std::to_string(size.n_left) +
                   (symmetry == Symmetry::kNone ? "" : ", Hermitian"));
      const RandomPoleModel model(size.n_g, symmetry, 31);
      Bands bands(size.n_bands, 32);
      if (size.n_left >= 90)
        for (std::size_t n = 0; n < bands.occupation.size(); ++n)
          bands.occupation[n] = n == 0 ? 1.0 : 0.0;
      const auto energies = uniform_energies(size.n_energies);
      const auto products =
          test::random_complex(static_cast<std::size_t>(size.n_left * size.n_bands * size.n_g), 33);
      const auto kernels = gw::make_gw_kernels(GetParam());
      const auto block =
          test::loaded_block(*kernels, {products.data(), {size.n_left, size.n_bands, size.n_g}});
      const auto poles = kernels->pole_sums().load(model.view(), {});
      std::vector<Cplx> sigma(static_cast<std::size_t>(size.n_energies * size.n_left * size.n_left),
                              {1.0, 2.0});
      const auto report =
          poles->add_offdiagonal(*block,
                                 {{energies.data(), {size.n_energies}},
                                  {bands.energy_ry.data(), {size.n_bands}},
                                  {bands.occupation.data(), {size.n_bands}},
                                  0.7},
                                 {}, {sigma.data(), {size.n_energies, size.n_left, size.n_left}});
      EXPECT_EQ(report.pairs, size.n_bands * size.n_energies);
      EXPECT_EQ(report.direct_pairs, report.pairs);
      EXPECT_EQ(report.hermitian, symmetry == Symmetry::kHermitian);
      const std::int64_t every = std::max(
                             {std::int64_t{1}, size.n_left / 30, size.n_left * size.n_g / 1500}),
                         n = (size.n_left + every - 1) / every;
      const auto expected = off_diagonal_oracle(size, model, bands, energies, products, every);
      const double tolerance = 1e-11 * absolute_sum(model) * static_cast<double>(size.n_bands);
      for (std::int64_t e = 0; e < size.n_energies; ++e)
        for (std::int64_t l = 0; l < n; ++l)
          for (std::int64_t m = 0; m < n; ++m) {
            const Cplx got = sigma[static_cast<std::size_t>(
                (e * size.n_left + l * every) * size.n_left + m * every)];
            ASSERT_LE(std::abs(got - Cplx(1.0, 2.0) -
                               0.7 * expected[static_cast<std::size_t>((e * n + l) * n + m)]),
                      tolerance)
                << e << ' ' << l * every << ' ' << m * every;
          }
    }
}

/// Compares Σ_lm(E) with the naive sums where separable sums replace the pairs that cross no pole.
/// The absolute error is at most the tolerance times Σ|A/ω̃||M||M|, which the sum of absolute terms
/// bounds. Pairs that cross a pole are still summed directly.
void check_separable(const Device& device, const OffDiagonalCase& size) {
  using Method = gw::OffDiagonalOptions::Method;
  SCOPED_TRACE("n_g " + std::to_string(size.n_g) + ", outer states " + std::to_string(size.n_left));
  const RandomPoleModel model(size.n_g, size.symmetry, 35);
  Bands bands(size.n_bands, 36);
  if (size.n_left >= 90)
    for (std::size_t i = 0; i < bands.occupation.size(); ++i)
      bands.occupation[i] = i % 2 == 0 ? 1.0 : 0.0;
  const auto energies = uniform_energies(size.n_energies);
  const auto products =
      test::random_complex(static_cast<std::size_t>(size.n_left * size.n_bands * size.n_g), 37);
  const std::int64_t every = std::max<std::int64_t>(1, size.n_left / 10),
                     n = (size.n_left + every - 1) / every;
  const auto expected = off_diagonal_oracle(size, model, bands, energies, products, every);
  struct Way {
    Method method;
    double tolerance;
  };
  for (const Way& way : {Way{Method::kExponentialSums, 1e-4},
                         {Method::kRationalSums, 1e-6},
                         {Method::kRationalSums, 1e-10}}) {
    const auto kernels = gw::make_gw_kernels(device);
    const auto block =
        test::loaded_block(*kernels, {products.data(), {size.n_left, size.n_bands, size.n_g}});
    const auto poles = kernels->pole_sums().load(model.view(), {});
    std::vector<Cplx> sigma(static_cast<std::size_t>(size.n_energies * size.n_left * size.n_left));
    gw::OffDiagonalOptions options;
    options.method = way.method;
    options.tolerance_relative = way.tolerance;
    const auto report = poles->add_offdiagonal(
        *block,
        {{energies.data(), {size.n_energies}},
         {bands.energy_ry.data(), {size.n_bands}},
         {bands.occupation.data(), {size.n_bands}},
         0.7},
        options, {sigma.data(), {size.n_energies, size.n_left, size.n_left}});
    EXPECT_GT(report.direct_pairs, 0);
    EXPECT_LT(report.direct_pairs, report.pairs);
    EXPECT_GT(report.terms, 1);
    EXPECT_LE(report.fit_error_relative, way.tolerance);
    double worst = 0.0;
    for (std::int64_t e = 0; e < size.n_energies; ++e)
      for (std::int64_t l = 0; l < n; ++l)
        for (std::int64_t m = 0; m < n; ++m)
          worst = std::max(worst,
                           std::abs(sigma[static_cast<std::size_t>(
                                        (e * size.n_left + l * every) * size.n_left + m * every)] -
                                    0.7 * expected[static_cast<std::size_t>((e * n + l) * n + m)]));
    EXPECT_LE(worst, way.tolerance * absolute_sum(model) * static_cast<double>(size.n_bands));
    EXPECT_GT(worst, 0.0);
  }
}

// Separable matrices of Hermitian models are folded too. The sizes lie below, across and (on CUDA:
// 512 columns and more) beyond one block of columns. CUDA uses its fused kernel for 90 and more
// outer states; one case has an odd number of its tiles.
TEST_P(GwSigmaKernels, SeparableSumsAgreeWithinTheirTolerance) {
  check_separable(GetParam(), {31, 3, 15, 9});
  check_separable(GetParam(), {131, 3, 15, 9, Symmetry::kHermitian});
  check_separable(GetParam(), {600, 2, 6, 2, Symmetry::kHermitian});
  for (const Symmetry symmetry : {Symmetry::kNone, Symmetry::kHermitian}) {
    check_separable(GetParam(), {symmetry == Symmetry::kNone ? 33 : 71, 128, 2, 5, symmetry});
    check_separable(GetParam(), {35, 230, 2, 2, symmetry});
  }
}

// The elements l = m of the matrix equal the diagonal sums at the same energies.
TEST_P(GwSigmaKernels, OffDiagonalContainsTheDiagonal) {
  for (const Symmetry symmetry : {Symmetry::kNone, Symmetry::kHermitian}) {
    const int n_g = 40;
    const std::int64_t n_left = 3, n_bands = 8, n_energies = 4;
    const RandomPoleModel model(n_g, symmetry, 38);
    const Bands bands(n_bands, 39);
    const auto energies = uniform_energies(n_energies);
    const auto products =
        test::random_complex(static_cast<std::size_t>(n_left * n_bands * n_g), 40);
    const auto kernels = gw::make_gw_kernels(GetParam());
    const auto block = test::loaded_block(*kernels, {products.data(), {n_left, n_bands, n_g}});
    const auto poles = kernels->pole_sums().load(model.view(), {});
    std::vector<Cplx> sigma(n_energies * n_left * n_left), total(n_left * n_energies),
        sx(total.size());
    poles->add_offdiagonal(*block,
                           {{energies.data(), {n_energies}},
                            {bands.energy_ry.data(), {n_bands}},
                            {bands.occupation.data(), {n_bands}},
                            1.0},
                           {}, {sigma.data(), {n_energies, n_left, n_left}});
    std::vector<double> x;
    for (std::int64_t l = 0; l < n_left; ++l)
      for (double band : bands.energy_ry)
        for (double energy : energies) x.push_back(energy - band);
    poles->add_diagonal(
        *block,
        {{x.data(), {n_left, n_bands, n_energies}}, {bands.occupation.data(), {n_bands}}, 1.0},
        {{total.data(), {n_left, n_energies}}, {sx.data(), {n_left, n_energies}}});
    for (std::int64_t l = 0; l < n_left; ++l)
      for (std::int64_t e = 0; e < n_energies; ++e)
        EXPECT_LE(std::abs(total[l * n_energies + e] - sigma[(e * n_left + l) * n_left + l]),
                  1e-11 * absolute_sum(model) * static_cast<double>(n_bands));
  }
}

}  // namespace
