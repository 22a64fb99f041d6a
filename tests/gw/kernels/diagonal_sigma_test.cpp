// Kernels of the diagonal self-energy Σ_ll(E) and its slope. The truth are the naive sums over
// split terms (tests/oracle/gw), on every device; sigma_problem.hpp derives the tolerance.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/kernels/sigma_problem.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace {

using namespace quasi;
using gw::Cplx;
using test::absolute_sum;
using test::Bands;
using test::GwSigmaKernels;
using test::RandomPoleModel;
using test::Symmetry;

QUASI_ON_EVERY_DEVICE(GwSigmaKernels);

/// Compares the diagonal sums SX and SX + CH of three outer states with the naive sums. The sums
/// start from values other than zero, because the kernel adds.
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

// A general model, for one to seven energies: both triangles are summed.
TEST_P(GwSigmaKernels, DiagonalAgreesWithTheSplitSums) {
  for (std::int64_t n_energies : {1, 2, 3, 4, 5, 7})
    check_diagonal(GetParam(), 33, 17, n_energies, Symmetry::kNone,
                   100 + static_cast<std::uint32_t>(n_energies));
}

// For a Hermitian model the kernel sums one triangle; the result is the sum over both.
TEST_P(GwSigmaKernels, DiagonalFoldsAHermitianModel) {
  for (std::int64_t n_energies : {1, 2, 3, 4, 6})
    check_diagonal(GetParam(), 45, 12, n_energies, Symmetry::kHermitian,
                   200 + static_cast<std::uint32_t>(n_energies));
}

// Sizes of one, and sizes around powers of two.
TEST_P(GwSigmaKernels, DiagonalAtOddSizes) {
  check_diagonal(GetParam(), 1, 1, 1, Symmetry::kNone, 1);
  check_diagonal(GetParam(), 1, 9, 3, Symmetry::kHermitian, 2);
  check_diagonal(GetParam(), 64, 3, 3, Symmetry::kNone, 3);
  check_diagonal(GetParam(), 65, 2, 2, Symmetry::kHermitian, 4);
  check_diagonal(GetParam(), 131, 70, 3, Symmetry::kNone, 5);
  check_diagonal(GetParam(), 131, 41, 3, Symmetry::kHermitian, 6);
}

// One call gives value and slope. The value is the plain sum; the slope is the sum of the terms
// differentiated by hand. The tolerance is 1e-11 of the sum of absolute terms, which poles
// dominate.
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

// Imaginary poles in both branches of the rule near x = 0, for x of both signs, and more poles than
// a block has threads. Values agree to 1e-12 of the sum of absolute terms. Slopes agree to the 1e-7
// of the oracle's finite differences (h = 2e-4 Ry, lengths from 0.037 Ry).
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
  // |SX| of an imaginary pole is at most 1: only the cut of 0.9 drops terms.
  for (const double cut : {4.0, 0.9}) {
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

// Repeated calls give equal bits.
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

// An occupation of 1.5 is refused as invalid input.
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

}  // namespace
