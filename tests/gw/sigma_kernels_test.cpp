// Self-energy kernels against the naive sums, on every device.
//
// Tolerance 1e-11 of the sum of absolute terms: sums of up to 1e5 terms rounded at 1e-16 each, with
// poles approached to γ = 0.037 Ry, which magnifies the rounding of ω̃ by up to 1e3.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/random_problem.hpp"
#include "tests/support/every_device.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace {

using namespace quasi;
using gw::Cplx;
using test::RandomPoleModel;
using test::Symmetry;

class GwSigmaKernels : public test::OnEveryDevice {};
QUASI_ON_EVERY_DEVICE(GwSigmaKernels);

/// Bands with energies E_n, some occupied, one half filled, and outer states' energies among them,
/// so that all sides of every rule occur.
struct Bands {
  std::vector<double> energy_ry, occupation;
  Bands(std::int64_t n, std::uint32_t seed) : energy_ry(n), occupation(n) {
    std::mt19937_64 generator(seed);
    std::uniform_real_distribution<double> uniform(-1.0, 6.0);
    for (double& e : energy_ry) e = uniform(generator);
    std::sort(energy_ry.begin(), energy_ry.end());
    for (std::int64_t i = 0; i < n; ++i) occupation[i] = i < n / 3 ? 1.0 : i == n / 3 ? 0.5 : 0.0;
  }
};

double absolute_sum(const RandomPoleModel& model) {
  double sum = 0.0;
  for (const Cplx& value : model.oracle.i_minus_epsinv) sum += std::abs(value);
  return sum;
}

void check_diagonal(const Device& device, int n_g, std::int64_t n_bands, std::int64_t n_energies,
                    Symmetry symmetry, std::uint32_t seed) {
  SCOPED_TRACE("n_g " + std::to_string(n_g) + ", bands " + std::to_string(n_bands) + ", energies " +
               std::to_string(n_energies) + ", seed " + std::to_string(seed));
  const RandomPoleModel model(n_g, symmetry, seed);
  const Bands bands(n_bands, seed + 7);
  const std::int64_t n_left = 3;
  const double weight = 0.37;
  const auto products = test::random_complex(static_cast<std::size_t>(n_left * n_bands * n_g), seed + 9);
  std::vector<double> x(static_cast<std::size_t>(n_left * n_bands * n_energies));
  for (std::int64_t l = 0; l < n_left; ++l)
    for (std::int64_t n = 0; n < n_bands; ++n)
      for (std::int64_t e = 0; e < n_energies; ++e)
        x[(l * n_bands + n) * n_energies + e] =
            0.4 + 0.9 * static_cast<double>(l) + 0.21 * static_cast<double>(e) - bands.energy_ry[n];

  const auto kernels = gw::make_gw_kernels(device);
  kernels->load_pair_products({products.data(), {n_left, n_bands, n_g}});
  kernels->load_plasmon_pole(model.view(), {});
  std::vector<Cplx> total(n_left * n_energies, {0.25, -0.5}), sx(n_left * n_energies, {0.125, 1.0});
  kernels->sigma_diagonal({x.data(), {n_left, n_bands, n_energies}},
                          {bands.occupation.data(), {n_bands}}, weight,
                          {total.data(), {n_left, n_energies}}, {sx.data(), {n_left, n_energies}});

  const double tolerance = 1e-11 * absolute_sum(model) * static_cast<double>(n_bands);
  for (std::int64_t l = 0; l < n_left; ++l)
    for (std::int64_t e = 0; e < n_energies; ++e) {
      std::vector<double> x_of_n(n_bands);
      for (std::int64_t n = 0; n < n_bands; ++n) x_of_n[n] = x[(l * n_bands + n) * n_energies + e];
      const std::vector<Cplx> m(products.begin() + l * n_bands * n_g,
                                products.begin() + (l + 1) * n_bands * n_g);
      const auto expected = oracle::gw::diagonal(model.oracle, {}, m, x_of_n, bands.occupation);
      const Cplx got_total = total[l * n_energies + e] - Cplx(0.25, -0.5);
      const Cplx got_sx = sx[l * n_energies + e] - Cplx(0.125, 1.0);
      EXPECT_LE(std::abs(got_total - weight * (expected.sx + expected.ch)), tolerance) << l << ' ' << e;
      EXPECT_LE(std::abs(got_sx - weight * expected.sx), tolerance) << l << ' ' << e;
    }
}

TEST_P(GwSigmaKernels, DiagonalAgreesWithTheSplitSums) {
  for (std::int64_t n_energies : {1, 2, 3, 4, 5, 7})
    check_diagonal(GetParam(), 33, 17, n_energies, Symmetry::kNone, 100 + static_cast<std::uint32_t>(n_energies));
}

// A Hermitian model takes the folded sum over one triangle; the answer is that of both.
TEST_P(GwSigmaKernels, DiagonalFoldsAHermitianModel) {
  for (std::int64_t n_energies : {1, 2, 3, 4, 6})
    check_diagonal(GetParam(), 45, 12, n_energies, Symmetry::kHermitian, 200 + static_cast<std::uint32_t>(n_energies));
}

TEST_P(GwSigmaKernels, DiagonalAtOddSizes) {
  check_diagonal(GetParam(), 1, 1, 1, Symmetry::kNone, 1);
  check_diagonal(GetParam(), 1, 9, 3, Symmetry::kHermitian, 2);
  check_diagonal(GetParam(), 64, 3, 3, Symmetry::kNone, 3);
  check_diagonal(GetParam(), 65, 2, 2, Symmetry::kHermitian, 4);
  check_diagonal(GetParam(), 131, 70, 3, Symmetry::kNone, 5);
  check_diagonal(GetParam(), 131, 41, 3, Symmetry::kHermitian, 6);
}

// Value and slope in one call: the value is that of the plain sum, the slope that of each split term
// differentiated by hand; tolerance 1e-11 of the sum of absolute terms, which poles dominate.
TEST_P(GwSigmaKernels, SlopeAgreesWithTheDifferentiatedTerms) {
  for (const Symmetry symmetry : {Symmetry::kNone, Symmetry::kHermitian}) {
    const int n_g = 37;
    const std::int64_t n_left = 3, n_bands = 15;
    const RandomPoleModel model(n_g, symmetry, 51);
    const Bands bands(n_bands, 52);
    const auto products = test::random_complex(static_cast<std::size_t>(n_left * n_bands * n_g), 53);
    std::vector<double> x;
    for (std::int64_t l = 0; l < n_left; ++l)
      for (double band : bands.energy_ry) x.push_back(0.4 + 0.9 * static_cast<double>(l) - band);
    const auto kernels = gw::make_gw_kernels(GetParam());
    kernels->load_pair_products({products.data(), {n_left, n_bands, n_g}});
    kernels->load_plasmon_pole(model.view(), {});
    std::vector<Cplx> total(n_left, {1.0, 0.0}), sx(n_left), slope(n_left, {0.0, 2.0});
    kernels->sigma_diagonal_slope({x.data(), {n_left, n_bands}}, {bands.occupation.data(), {n_bands}}, 0.6,
                                  {total.data(), {n_left}}, {sx.data(), {n_left}}, {slope.data(), {n_left}});
    for (std::int64_t l = 0; l < n_left; ++l) {
      const std::vector<double> x_of_n(x.begin() + l * n_bands, x.begin() + (l + 1) * n_bands);
      const std::vector<Cplx> m(products.begin() + l * n_bands * n_g, products.begin() + (l + 1) * n_bands * n_g);
      const auto value = oracle::gw::diagonal(model.oracle, {}, m, x_of_n, bands.occupation);
      const auto expected = oracle::gw::diagonal_slope(model.oracle, {}, m, x_of_n, bands.occupation);
      const double tolerance = 1e-11 * absolute_sum(model) * static_cast<double>(n_bands);
      EXPECT_LE(std::abs(total[l] - 1.0 - 0.6 * (value.sx + value.ch)), tolerance) << l;
      EXPECT_LE(std::abs(sx[l] - 0.6 * value.sx), tolerance) << l;
      EXPECT_LE(std::abs(slope[l] - Cplx(0.0, 2.0) - 0.6 * (expected.sx + expected.ch)), 1e-11 * expected.magnitude) << l;
    }
  }
}

// The same calls give the same bits.
TEST_P(GwSigmaKernels, DiagonalRepeatsBitForBit) {
  const int n_g = 70;
  const RandomPoleModel model(n_g, Symmetry::kNone, 11);
  const Bands bands(20, 12);
  const auto products = test::random_complex(20 * n_g, 13);
  std::vector<double> x;
  for (double energy : bands.energy_ry)
    for (double e : {0.1, 0.2, 0.3}) x.push_back(e - energy);
  std::vector<Cplx> first;
  for (int turn = 0; turn < 2; ++turn) {
    const auto kernels = gw::make_gw_kernels(GetParam());
    kernels->load_pair_products({products.data(), {1, 20, n_g}});
    kernels->load_plasmon_pole(model.view(), {});
    std::vector<Cplx> total(3), sx(3);
    kernels->sigma_diagonal({x.data(), {1, 20, 3}}, {bands.occupation.data(), {20}}, 1.0,
                            {total.data(), {1, 3}}, {sx.data(), {1, 3}});
    total.insert(total.end(), sx.begin(), sx.end());
    if (turn == 0) first = total;
    EXPECT_EQ(total, first);
  }
}

TEST_P(GwSigmaKernels, RefusesOccupationsOutsideTheUnitInterval) {
  const RandomPoleModel model(5, Symmetry::kNone, 21);
  const auto products = test::random_complex(5, 22);
  const double x = 1.0, occupation = 1.5;
  Cplx total, sx;
  const auto kernels = gw::make_gw_kernels(GetParam());
  kernels->load_pair_products({products.data(), {1, 1, 5}});
  kernels->load_plasmon_pole(model.view(), {});
  EXPECT_THROW(kernels->sigma_diagonal({&x, {1, 1, 1}}, {&occupation, {1}}, 1.0, {&total, {1, 1}},
                                       {&sx, {1, 1}}),
               InvalidInput);
}

struct OffDiagonalCase {
  int n_g;
  std::int64_t n_left, n_bands, n_energies;
};

std::vector<Cplx> off_diagonal_oracle(const OffDiagonalCase& size, const RandomPoleModel& model,
                                      const Bands& bands, const std::vector<double>& energies,
                                      const std::vector<Cplx>& products) {
  std::vector<Cplx> sigma;
  const std::int64_t stride = size.n_bands * size.n_g;
  for (double energy : energies) {
    std::vector<double> x;
    for (double e : bands.energy_ry) x.push_back(energy - e);
    for (std::int64_t l = 0; l < size.n_left; ++l)
      for (std::int64_t m = 0; m < size.n_left; ++m)
        sigma.push_back(oracle::gw::off_diagonal(
            model.oracle, {}, {products.begin() + l * stride, products.begin() + (l + 1) * stride},
            {products.begin() + m * stride, products.begin() + (m + 1) * stride}, x, bands.occupation));
  }
  return sigma;
}

std::vector<double> uniform_energies(std::int64_t n) {
  std::vector<double> energies(n);
  for (std::int64_t e = 0; e < n; ++e) energies[e] = 0.3 + 0.17 * static_cast<double>(e);
  return energies;
}

// 90 outer states and occupations of 0 and 1 are what CUDA's fused kernel takes: here with tiles cut by
// every border.
TEST_P(GwSigmaKernels, OffDiagonalProductsAgreeWithTheNaiveSums) {
  for (const OffDiagonalCase& size : {OffDiagonalCase{29, 4, 9, 5}, {67, 3, 7, 11}, {1, 1, 1, 1}, {37, 90, 3, 6}}) {
    const RandomPoleModel model(size.n_g, Symmetry::kNone, 31);
    Bands bands(size.n_bands, 32);
    if (size.n_left == 90) bands.occupation = {1.0, 0.0, 0.0};
    const auto energies = uniform_energies(size.n_energies);
    const auto products =
        test::random_complex(static_cast<std::size_t>(size.n_left * size.n_bands * size.n_g), 33);
    const auto kernels = gw::make_gw_kernels(GetParam());
    kernels->load_pair_products({products.data(), {size.n_left, size.n_bands, size.n_g}});
    kernels->load_plasmon_pole(model.view(), {});
    std::vector<Cplx> sigma(size.n_energies * size.n_left * size.n_left, {1.0, 2.0});
    const auto report = kernels->sigma_offdiagonal(
        {energies.data(), {size.n_energies}}, {bands.energy_ry.data(), {size.n_bands}},
        {bands.occupation.data(), {size.n_bands}}, 0.7, {},
        {sigma.data(), {size.n_energies, size.n_left, size.n_left}});
    EXPECT_EQ(report.pairs, size.n_bands * size.n_energies);
    EXPECT_EQ(report.direct_pairs, report.pairs);
    const auto expected = off_diagonal_oracle(size, model, bands, energies, products);
    const double tolerance = 1e-11 * absolute_sum(model) * static_cast<double>(size.n_bands);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_LE(std::abs(sigma[i] - Cplx(1.0, 2.0) - 0.7 * expected[i]), tolerance) << i;
  }
}

// Separable sums replace the pairs that cross no pole. Absolute error: tolerance times Σ|A/ω̃||M||M|,
// bounded by the sum of absolute terms; the direct pairs keep their rules.
TEST_P(GwSigmaKernels, SeparableSumsAgreeWithinTheirTolerance) {
  using Method = gw::GwKernels::OffDiagonalOptions::Method;
  const OffDiagonalCase size{31, 3, 15, 9};
  const RandomPoleModel model(size.n_g, Symmetry::kNone, 35);
  const Bands bands(size.n_bands, 36);
  const auto energies = uniform_energies(size.n_energies);
  const auto products =
      test::random_complex(static_cast<std::size_t>(size.n_left * size.n_bands * size.n_g), 37);
  const auto expected = off_diagonal_oracle(size, model, bands, energies, products);
  struct Way {
    Method method;
    double tolerance;
  };
  for (const Way& way : {Way{Method::kExponentialSums, 1e-4}, {Method::kRationalSums, 1e-6},
                         {Method::kRationalSums, 1e-10}}) {
    const auto kernels = gw::make_gw_kernels(GetParam());
    kernels->load_pair_products({products.data(), {size.n_left, size.n_bands, size.n_g}});
    kernels->load_plasmon_pole(model.view(), {});
    std::vector<Cplx> sigma(size.n_energies * size.n_left * size.n_left);
    gw::GwKernels::OffDiagonalOptions options;
    options.method = way.method;
    options.tolerance_relative = way.tolerance;
    const auto report = kernels->sigma_offdiagonal(
        {energies.data(), {size.n_energies}}, {bands.energy_ry.data(), {size.n_bands}},
        {bands.occupation.data(), {size.n_bands}}, 0.7, options,
        {sigma.data(), {size.n_energies, size.n_left, size.n_left}});
    EXPECT_GT(report.direct_pairs, 0);
    EXPECT_LT(report.direct_pairs, report.pairs);
    EXPECT_GT(report.terms, 1);
    EXPECT_LE(report.fit_error_relative, way.tolerance);
    double worst = 0.0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      worst = std::max(worst, std::abs(sigma[i] - 0.7 * expected[i]));
    EXPECT_LE(worst, way.tolerance * absolute_sum(model) * static_cast<double>(size.n_bands));
    EXPECT_GT(worst, 0.0);
  }
}

// On the diagonal l = m the matrix is the diagonal sum at the same energies.
TEST_P(GwSigmaKernels, OffDiagonalContainsTheDiagonal) {
  const int n_g = 40;
  const std::int64_t n_left = 3, n_bands = 8, n_energies = 4;
  const RandomPoleModel model(n_g, Symmetry::kNone, 38);
  const Bands bands(n_bands, 39);
  const auto energies = uniform_energies(n_energies);
  const auto products = test::random_complex(static_cast<std::size_t>(n_left * n_bands * n_g), 40);
  const auto kernels = gw::make_gw_kernels(GetParam());
  kernels->load_pair_products({products.data(), {n_left, n_bands, n_g}});
  kernels->load_plasmon_pole(model.view(), {});
  std::vector<Cplx> sigma(n_energies * n_left * n_left), total(n_left * n_energies), sx(total.size());
  kernels->sigma_offdiagonal({energies.data(), {n_energies}}, {bands.energy_ry.data(), {n_bands}},
                             {bands.occupation.data(), {n_bands}}, 1.0, {},
                             {sigma.data(), {n_energies, n_left, n_left}});
  std::vector<double> x;
  for (std::int64_t l = 0; l < n_left; ++l)
    for (double band : bands.energy_ry)
      for (double energy : energies) x.push_back(energy - band);
  kernels->sigma_diagonal({x.data(), {n_left, n_bands, n_energies}}, {bands.occupation.data(), {n_bands}},
                          1.0, {total.data(), {n_left, n_energies}}, {sx.data(), {n_left, n_energies}});
  for (std::int64_t l = 0; l < n_left; ++l)
    for (std::int64_t e = 0; e < n_energies; ++e)
      EXPECT_LE(std::abs(total[l * n_energies + e] - sigma[(e * n_left + l) * n_left + l]),
                1e-11 * absolute_sum(model) * static_cast<double>(n_bands));
}

}  // namespace
