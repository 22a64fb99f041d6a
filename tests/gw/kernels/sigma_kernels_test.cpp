// Self-energy kernels against the naive sums, on every device.
//
// Tolerance 1e-11 of the sum of absolute terms: sums of up to 1e5 terms rounded at 1e-16 each, with
// poles approached to γ = 0.037 Ry, which magnifies the rounding of ω̃ by up to 1e3.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/kernels/random_problem.hpp"
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
  const auto products =
      test::random_complex(static_cast<std::size_t>(n_left * n_bands * n_g), seed + 9);
  std::vector<double> x(static_cast<std::size_t>(n_left * n_bands * n_energies));
  for (std::int64_t l = 0; l < n_left; ++l)
    for (std::int64_t n = 0; n < n_bands; ++n)
      for (std::int64_t e = 0; e < n_energies; ++e)
        x[(l * n_bands + n) * n_energies + e] =
            0.4 + 0.9 * static_cast<double>(l) + 0.21 * static_cast<double>(e) - bands.energy_ry[n];

  const auto kernels = gw::make_gw_kernels(device);
  const auto block = test::loaded_block(*kernels, {products.data(), {n_left, n_bands, n_g}});
  const auto poles = kernels->pole_sums().load(model.view(), {});
  std::vector<Cplx> total(n_left * n_energies, {0.25, -0.5}), sx(n_left * n_energies, {0.125, 1.0});
  poles->add_diagonal(
      *block,
      {{x.data(), {n_left, n_bands, n_energies}}, {bands.occupation.data(), {n_bands}}, weight},
      {{total.data(), {n_left, n_energies}}, {sx.data(), {n_left, n_energies}}});

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
      EXPECT_LE(std::abs(got_total - weight * (expected.sx + expected.ch)), tolerance)
          << l << ' ' << e;
      EXPECT_LE(std::abs(got_sx - weight * expected.sx), tolerance) << l << ' ' << e;
    }
}

TEST_P(GwSigmaKernels, DiagonalAgreesWithTheSplitSums) {
  for (std::int64_t n_energies : {1, 2, 3, 4, 5, 7})
    check_diagonal(GetParam(), 33, 17, n_energies, Symmetry::kNone,
                   100 + static_cast<std::uint32_t>(n_energies));
}

// A Hermitian model takes the folded sum over one triangle; the answer is that of both.
TEST_P(GwSigmaKernels, DiagonalFoldsAHermitianModel) {
  for (std::int64_t n_energies : {1, 2, 3, 4, 6})
    check_diagonal(GetParam(), 45, 12, n_energies, Symmetry::kHermitian,
                   200 + static_cast<std::uint32_t>(n_energies));
}

TEST_P(GwSigmaKernels, DiagonalAtOddSizes) {
  check_diagonal(GetParam(), 1, 1, 1, Symmetry::kNone, 1);
  check_diagonal(GetParam(), 1, 9, 3, Symmetry::kHermitian, 2);
  check_diagonal(GetParam(), 64, 3, 3, Symmetry::kNone, 3);
  check_diagonal(GetParam(), 65, 2, 2, Symmetry::kHermitian, 4);
  check_diagonal(GetParam(), 131, 70, 3, Symmetry::kNone, 5);
  check_diagonal(GetParam(), 131, 41, 3, Symmetry::kHermitian, 6);
}

// Value and slope in one call: the value is that of the plain sum, the slope that of each split
// term differentiated by hand; tolerance 1e-11 of the sum of absolute terms, which poles dominate.
TEST_P(GwSigmaKernels, SlopeAgreesWithTheDifferentiatedTerms) {
  for (const Symmetry symmetry : {Symmetry::kNone, Symmetry::kHermitian}) {
    const int n_g = 37;
    const std::int64_t n_left = 3, n_bands = 15;
    const RandomPoleModel model(n_g, symmetry, 51);
    const Bands bands(n_bands, 52);
    const auto products =
        test::random_complex(static_cast<std::size_t>(n_left * n_bands * n_g), 53);
    std::vector<double> x;
    for (std::int64_t l = 0; l < n_left; ++l)
      for (double band : bands.energy_ry) x.push_back(0.4 + 0.9 * static_cast<double>(l) - band);
    const auto kernels = gw::make_gw_kernels(GetParam());
    const auto block = test::loaded_block(*kernels, {products.data(), {n_left, n_bands, n_g}});
    const auto poles = kernels->pole_sums().load(model.view(), {});
    std::vector<Cplx> total(n_left, {1.0, 0.0}), sx(n_left), slope(n_left, {0.0, 2.0});
    poles->add_diagonal_slope(
        *block, {{x.data(), {n_left, n_bands, 1}}, {bands.occupation.data(), {n_bands}}, 0.6},
        {{total.data(), {n_left}}, {sx.data(), {n_left}}, {slope.data(), {n_left}}});
    for (std::int64_t l = 0; l < n_left; ++l) {
      const std::vector<double> x_of_n(x.begin() + l * n_bands, x.begin() + (l + 1) * n_bands);
      const std::vector<Cplx> m(products.begin() + l * n_bands * n_g,
                                products.begin() + (l + 1) * n_bands * n_g);
      const auto value = oracle::gw::diagonal(model.oracle, {}, m, x_of_n, bands.occupation);
      const auto expected =
          oracle::gw::diagonal_slope(model.oracle, {}, m, x_of_n, bands.occupation);
      const double tolerance = 1e-11 * absolute_sum(model) * static_cast<double>(n_bands);
      EXPECT_LE(std::abs(total[l] - 1.0 - 0.6 * (value.sx + value.ch)), tolerance) << l;
      EXPECT_LE(std::abs(sx[l] - 0.6 * value.sx), tolerance) << l;
      EXPECT_LE(std::abs(slope[l] - Cplx(0.0, 2.0) - 0.6 * (expected.sx + expected.ch)),
                1e-11 * expected.magnitude)
          << l;
    }
  }
}

// Imaginary poles in both branches of the rule near x = 0, all sides of x, and more of them than a
// block of threads. Values to 1e-12 of the sum of absolute terms; slopes to the 1e-7 that
// differences of the oracle owe (h = 2e-4 Ry, lengths from 0.037 Ry).
TEST_P(GwSigmaKernels, ImaginaryPolesAgreeWithTheSplitTermsInComplexNumbers) {
  const std::int64_t n_g = 23, n_left = 2, n_right = 9, n_energies = 3;
  std::vector<gw::ImaginaryPole> poles;
  for (std::int32_t i = 0; i < 700; ++i) {
    const auto value = test::random_complex(2, 600 + static_cast<std::uint32_t>(i));
    poles.push_back({i % 23, (i * 7 + i / 23) % 23,
                     0.005 * std::pow(4000.0, 0.5 * (1.0 + value[1].real())), value[0]});
  }
  const auto products = test::random_complex(static_cast<std::size_t>(n_left * n_right * n_g), 71);
  std::vector<double> x, occupation;
  for (std::int64_t p = 0; p < n_left * n_right; ++p)
    for (std::int64_t e = 0; e < n_energies; ++e)
      x.push_back(p == 4 ? 0.004 + 0.001 * static_cast<double>(e)
                         : -1.7 + 0.31 * static_cast<double>(p) + 0.11 * static_cast<double>(e));
  for (std::int64_t n = 0; n < n_right; ++n)
    occupation.push_back(n < 4 ? 1.0 : n == 4 ? 0.25 : 0.0);
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto block = test::loaded_block(*kernels, {products.data(), {n_left, n_right, n_g}});
  for (const double cut :
       {4.0, 0.9}) {  // |SX| of an imaginary pole is at most 1: only the second drops any
    gw::PoleRules rules;
    rules.screened_exchange_cut = cut;
    const auto loaded = kernels->pole_sums().load_imaginary(
        {poles.data(), {static_cast<std::int64_t>(poles.size())}}, rules);
    std::vector<Cplx> total(static_cast<std::size_t>(n_left * n_energies), {1.0, 0.0}),
        sx(total.size()), slope(n_left, {0.0, 3.0});
    loaded->add_diagonal(
        *block, {{x.data(), {n_left, n_right, n_energies}}, {occupation.data(), {n_right}}, 0.4},
        {{total.data(), {n_left, n_energies}}, {sx.data(), {n_left, n_energies}}},
        {slope.data(), {n_left}});
    const oracle::gw::Rules oracle_rules{.screened_exchange_cut = cut};
    for (std::int64_t l = 0; l < n_left; ++l)
      for (std::int64_t e = 0; e < n_energies; ++e) {
        Cplx expected_sx, expected_ch, expected_slope;
        double magnitude = 0.0;
        for (std::int64_t n = 0; n < n_right; ++n) {
          const double at = x[static_cast<std::size_t>((l * n_right + n) * n_energies + e)];
          const Cplx* m = products.data() + (l * n_right + n) * n_g;
          for (const gw::ImaginaryPole& pole : poles) {
            const Cplx mm = 2.0 * m[pole.g] * pole.half_i_v * std::conj(m[pole.h]);
            const auto terms = oracle::gw::imaginary_terms(at, pole.pole_ry, true, oracle_rules);
            const auto slopes = oracle::gw::imaginary_slopes(at, pole.pole_ry, true, oracle_rules);
            expected_sx += occupation[static_cast<std::size_t>(n)] * mm * terms.sx;
            expected_ch += mm * terms.ch;
            if (e == 0)
              expected_slope +=
                  mm * (slopes.ch + occupation[static_cast<std::size_t>(n)] * slopes.sx);
            magnitude += std::abs(mm);
          }
        }
        const auto i = static_cast<std::size_t>(l * n_energies + e);
        EXPECT_LE(std::abs(sx[i] - 0.4 * expected_sx), 1e-12 * magnitude) << l << ' ' << e;
        EXPECT_LE(std::abs(total[i] - 1.0 - 0.4 * (expected_sx + expected_ch)), 1e-12 * magnitude)
            << l << ' ' << e;
        if (e == 0) {
          EXPECT_LE(
              std::abs(slope[static_cast<std::size_t>(l)] - Cplx(0.0, 3.0) - 0.4 * expected_slope),
              1e-7 * magnitude)
              << l;
        }
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
    const auto block = test::loaded_block(*kernels, {products.data(), {1, 20, n_g}});
    const auto poles = kernels->pole_sums().load(model.view(), {});
    std::vector<Cplx> total(3), sx(3);
    poles->add_diagonal(*block, {{x.data(), {1, 20, 3}}, {bands.occupation.data(), {20}}, 1.0},
                        {{total.data(), {1, 3}}, {sx.data(), {1, 3}}});
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
  const auto block = test::loaded_block(*kernels, {products.data(), {1, 1, 5}});
  const auto poles = kernels->pole_sums().load(model.view(), {});
  EXPECT_THROW(poles->add_diagonal(*block, {{&x, {1, 1, 1}}, {&occupation, {1}}, 1.0},
                                   {{&total, {1, 1}}, {&sx, {1, 1}}}),
               InvalidInput);
}

struct OffDiagonalCase {
  int n_g;
  std::int64_t n_left, n_bands, n_energies;
  Symmetry symmetry = Symmetry::kNone;
};

/// Σ_lm(E_e) of the outer states l, m = 0, every, 2·every, … alone.
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

std::vector<double> uniform_energies(std::int64_t n) {
  std::vector<double> energies(n);
  for (std::int64_t e = 0; e < n; ++e) energies[e] = 0.3 + 0.17 * static_cast<double>(e);
  return energies;
}

// 90 and more outer states with occupations of 0 and 1 are what CUDA's fused kernel takes: here
// with tiles cut by every border, and with ten steps of plane waves, which go around its buffers
// more than twice. Of a Hermitian model one triangle of P is used.
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

// Separable sums replace the pairs that cross no pole. Absolute error: tolerance times
// Σ|A/ω̃||M||M|, bounded by the sum of absolute terms; the direct pairs keep their rules.
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

// Hermitian models fold the separable matrices too: sizes below, across and (CUDA: 512 columns and
// more) beyond one block of columns. 90 and more outer states are what CUDA's fused kernel takes,
// with an odd number of tiles among them.
TEST_P(GwSigmaKernels, SeparableSumsAgreeWithinTheirTolerance) {
  check_separable(GetParam(), {31, 3, 15, 9});
  check_separable(GetParam(), {131, 3, 15, 9, Symmetry::kHermitian});
  check_separable(GetParam(), {600, 2, 6, 2, Symmetry::kHermitian});
  for (const Symmetry symmetry : {Symmetry::kNone, Symmetry::kHermitian}) {
    check_separable(GetParam(), {symmetry == Symmetry::kNone ? 33 : 71, 128, 2, 5, symmetry});
    check_separable(GetParam(), {35, 230, 2, 2, symmetry});
  }
}

// On the diagonal l = m the matrix is the diagonal sum at the same energies.
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
