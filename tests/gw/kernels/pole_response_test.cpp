// Response of the diagonal Σ to changes of a plasmon-pole model. The truth are central differences
// of the naive sums over split terms (tests/oracle/gw), on every device.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/gw/kernels/response_problem.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/kernels/pole_sums/changes/closed_sums.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace {

using namespace quasi;
using gw::Cplx;
using test::absolute_sum;
using test::GwSigmaKernels;
using test::RandomPoleModel;
using test::Symmetry;
using test::response::Change;
using test::response::kBands;
using test::response::kLeft;
using test::response::kStep;
using test::response::Rows;

QUASI_ON_EVERY_DEVICE(GwSigmaKernels);

double total_of(const oracle::gw::PoleModel& model, const std::vector<Cplx>& m,
                const std::vector<double>& x, const std::vector<double>& occupation) {
  const auto sums = oracle::gw::diagonal(model, {}, m, x, occupation);
  return (sums.sx + sums.ch).real();
}

/// Slopes of a model by the kernel of the diagonal Σ, [kLeft].
std::vector<double> slopes_of(const oracle::gw::PoleModel& model, const gw::PairBlock& block,
                              const Rows& rows, gw::GwKernels& kernels) {
  const auto n = static_cast<std::int64_t>(model.n_g);
  std::vector<Cplx> strength;
  std::vector<double> pole_ry;
  for (std::size_t i = 0; i < model.pole_ry.size(); ++i) {
    const double pole = model.pole_ry[i];
    pole_ry.push_back(pole > 0.0 ? std::min(pole, gw::kStaticPole_ry) : gw::kStaticPole_ry);
    strength.push_back(pole > 0.0 ? 0.5 * model.i_minus_epsinv[i] *
                                        model.coulomb[i % model.coulomb.size()] * pole_ry[i]
                                  : Cplx());
  }
  const auto poles =
      kernels.pole_sums().load({{strength.data(), {n, n}}, {pole_ry.data(), {n, n}}}, {});
  std::vector<Cplx> total(kLeft), slope(kLeft);
  poles->add_diagonal_slope(
      block, {{rows.x_ry.data(), {kLeft, kBands, 1}}, {rows.occupation.data(), {kBands}}, 1.0},
      {{total.data(), {kLeft}}, {}, {slope.data(), {kLeft}}});
  std::vector<double> real;
  for (const Cplx value : slope) real.push_back(value.real());
  return real;
}

// The differences are exact to the square of the step. Changes are rounded to single precision,
// 6e-8, and the rounding of the sums over the step is 1e-9: 2e-7 of the sum of absolute terms. A
// slope is larger by up to 1/γ = 27.
void check_response(const Device& device, int n_g, Symmetry symmetry, std::uint32_t seed) {
  const RandomPoleModel model(n_g, symmetry, seed);
  const Rows rows;
  const auto products =
      test::random_complex(static_cast<std::size_t>(kLeft * kBands * n_g), seed + 9);
  const Change changes[] = {{model, symmetry, seed + 20}, {model, symmetry, seed + 40}};
  const gw::PoleChange packed[] = {changes[0].packed(model, symmetry),
                                   changes[1].packed(model, symmetry)};
  const auto kernels = gw::make_gw_kernels(device);
  const auto block = test::loaded_block(*kernels, {products.data(), {kLeft, kBands, n_g}});
  const auto poles = kernels->pole_sums().load(model.view(), {});
  const auto loaded = kernels->pole_sums().load_changes(poles, {&packed[0], &packed[1]});
  std::vector<double> total(2 * kLeft, 0.25), slope(total);
  loaded->add_response(*block,
                       {.x_ry = {rows.x_ry.data(), {kLeft, kBands}},
                        .occupation = {rows.occupation.data(), {kBands}},
                        .weight = 0.37},
                       {{total.data(), {2, kLeft}}, {slope.data(), {2, kLeft}}});
  double scale = 0.0;
  const double tolerance = 2e-7 * absolute_sum(model) * static_cast<double>(kBands);
  for (std::int64_t c = 0; c < 2; ++c) {
    const auto above = changes[c].added(model.oracle, kStep),
               below = changes[c].added(model.oracle, -kStep);
    const auto slope_above = slopes_of(above, *block, rows, *kernels),
               slope_below = slopes_of(below, *block, rows, *kernels);
    for (std::int64_t l = 0; l < kLeft; ++l) {
      const std::vector<Cplx> m(products.begin() + l * kBands * n_g,
                                products.begin() + (l + 1) * kBands * n_g);
      const std::vector<double> x(rows.x_ry.begin() + l * kBands,
                                  rows.x_ry.begin() + (l + 1) * kBands);
      const auto i = static_cast<std::size_t>(c * kLeft + l);
      const double expected =
          (total_of(above, m, x, rows.occupation) - total_of(below, m, x, rows.occupation)) /
          (2.0 * kStep);
      EXPECT_NEAR((total[i] - 0.25) / (0.37 * kStep), expected, tolerance);
      EXPECT_NEAR((slope[i] - 0.25) / (0.37 * kStep),
                  (slope_above[l] - slope_below[l]) / (2.0 * kStep), 30.0 * tolerance);
      scale = std::max(scale, std::abs(expected));
    }
  }
  EXPECT_GT(scale, 100.0 * tolerance);
}

TEST_P(GwSigmaKernels, ResponseAgreesWithCentralDifferences) {
  check_response(GetParam(), 33, Symmetry::kNone, 510);
}
TEST_P(GwSigmaKernels, ResponseFoldsAHermitianModel) {
  check_response(GetParam(), 150, Symmetry::kHermitian, 520);
}

// Less the closed sum at x*, a band whose x is x* has no response, and vectors of the complement
// have the opposite of an empty band's.
TEST_P(GwSigmaKernels, ResponseOfTheClosedSum) {
  constexpr int kSize = 45;
  const RandomPoleModel model(kSize, Symmetry::kHermitian, 530);
  const gw::PoleChange change =
      Change(model, Symmetry::kHermitian, 540).packed(model, Symmetry::kHermitian);
  const auto products = test::random_complex(3 * kSize, 550);
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto block = test::loaded_block(*kernels, {products.data(), {1, 3, kSize}});
  const auto poles = kernels->pole_sums().load(model.view(), {});
  const auto loaded = kernels->pole_sums().load_changes(poles, {&change});
  const std::vector<double> x(3, -2.5), empty(3, 0.0);
  const auto response = [&](double closed_x_ry, bool only_closed) {
    double total = 0.0;
    loaded->add_response(*block,
                         {.x_ry = {x.data(), {1, 3}},
                          .occupation = {empty.data(), {3}},
                          .closed_x_ry = closed_x_ry,
                          .only_closed = only_closed},
                         {{&total, {1, 1}}, {}});
    return total;
  };
  const double plain = response(0.0, false), scale = std::abs(plain);
  EXPECT_GT(scale, 0.0);
  EXPECT_NEAR(response(-2.5, false), 0.0, 1e-12 * kStep * absolute_sum(model));
  EXPECT_NEAR(response(-2.5, true), -plain, 1e-12 * kStep * absolute_sum(model));
}

TEST_P(GwSigmaKernels, ResponseRefusesPartialOccupations) {
  const RandomPoleModel model(4, Symmetry::kNone, 560);
  const gw::PoleChange change = Change(model, Symmetry::kNone, 570).packed(model, Symmetry::kNone);
  const auto products = test::random_complex(4, 580);
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto block = test::loaded_block(*kernels, {products.data(), {1, 1, 4}});
  const auto loaded =
      kernels->pole_sums().load_changes(kernels->pole_sums().load(model.view(), {}), {&change});
  const double x = -1.0, half = 0.5;
  double total = 0.0;
  EXPECT_THROW(loaded->add_response(*block, {.x_ry = {&x, {1, 1}}, .occupation = {&half, {1}}},
                                    {{&total, {1, 1}}, {}}),
               InvalidInput);
}

// The sums of a response contain Σ of the model: for every segment of bands the total, its slope
// and the closed sum, SX − X of occupied bands, and both numbers of empty bands at other
// energies. The truth are the naive sums of each segment. The tolerance of sigma_problem.hpp is
// for a total; that of a slope counts its own absolute terms, which are larger near poles.

constexpr std::int64_t kSegmentEnd[] = {4, 7, kBands};
constexpr double kClosedX_ry = -2.5;

/// Bands [begin, end) of one outer state.
struct Segment {
  std::vector<Cplx> products;
  std::vector<double> x, other_x, occupation;
};
/// Other energies of the bands of the last segment, from 0.3 Ry below midgap to 1.3 Ry above it.
double other_x(const Rows& rows, std::int64_t l, std::int64_t n) {
  return n < kSegmentEnd[1] ? std::nan("")
                            : rows.x_ry[static_cast<std::size_t>(l * kBands + n)] + 1.2;
}
Segment segment_of(const Rows& rows, const std::vector<Cplx>& products, std::int64_t l,
                   std::size_t index) {
  const std::int64_t begin = index > 0 ? kSegmentEnd[index - 1] : 0,
                     n_g = std::ssize(products) / (kLeft * kBands);
  Segment of;
  for (std::int64_t n = begin; n < kSegmentEnd[index]; ++n) {
    of.x.push_back(rows.x_ry[static_cast<std::size_t>(l * kBands + n)]);
    of.other_x.push_back(other_x(rows, l, n));
    of.occupation.push_back(rows.occupation[static_cast<std::size_t>(n)]);
  }
  of.products.assign(products.begin() + (l * kBands + begin) * n_g,
                     products.begin() + (l * kBands + kSegmentEnd[index]) * n_g);
  return of;
}
/// Σ_n M W* M† with W* of an empty band at x*.
double closed_sum(const oracle::gw::PoleModel& model, const Segment& of) {
  const std::vector<double> x(of.x.size(), kClosedX_ry), empty(of.x.size(), 0.0);
  return oracle::gw::diagonal(model, {}, of.products, x, empty).ch.real();
}

void check_own_sums(const Device& device, int n_g, Symmetry symmetry, bool real, bool with_slope,
                    std::uint32_t seed) {
  SCOPED_TRACE("n_g " + std::to_string(n_g) + ", seed " + std::to_string(seed));
  const RandomPoleModel model(n_g, symmetry, seed);
  const Rows rows;
  auto products = test::random_complex(static_cast<std::size_t>(kLeft * kBands * n_g), seed + 9);
  if (real)
    for (Cplx& value : products) value = value.real();
  std::vector<double> others;
  for (std::int64_t l = 0; l < kLeft; ++l)
    for (std::int64_t n = 0; n < kBands; ++n) others.push_back(other_x(rows, l, n));
  const gw::PoleChange change = Change(model, symmetry, seed + 20).packed(model, symmetry);
  const auto kernels = gw::make_gw_kernels(device);
  const auto block = test::loaded_block(*kernels, {products.data(), {kLeft, kBands, n_g}});
  const auto loaded =
      kernels->pole_sums().load_changes(kernels->pole_sums().load(model.view(), {}), {&change});
  constexpr double kWeight = 0.37, kStart = 0.125;
  std::vector<double> total(kLeft), slope(kLeft), own(3 * gw::kOwnSums * kLeft, kStart);
  loaded->add_response(*block,
                       {.x_ry = {rows.x_ry.data(), {kLeft, kBands}},
                        .occupation = {rows.occupation.data(), {kBands}},
                        .weight = kWeight,
                        .closed_x_ry = kClosedX_ry,
                        .other_x_ry = {others.data(), {kLeft, kBands}},
                        .segment_end = {kSegmentEnd, kSegmentEnd + 3},
                        .screened_exchange = true},
                       {{total.data(), {1, kLeft}},
                        with_slope ? View<double, 2>{slope.data(), {1, kLeft}} : View<double, 2>{},
                        {own.data(), {3, gw::kOwnSums, kLeft}}});
  const double tolerance = 1e-11 * absolute_sum(model) * static_cast<double>(kBands);
  for (std::size_t index = 0; index < 3; ++index)
    for (std::int64_t l = 0; l < kLeft; ++l) {
      const auto found = [&](gw::OwnSum which) {
        const auto at =
            (static_cast<std::int64_t>(index) * gw::kOwnSums + static_cast<std::int64_t>(which)) *
                kLeft +
            l;
        return (own[static_cast<std::size_t>(at)] - kStart) / kWeight;
      };
      const Segment of = segment_of(rows, products, l, index);
      const auto sums = oracle::gw::diagonal(model.oracle, {}, of.products, of.x, of.occupation);
      const auto slopes =
          oracle::gw::diagonal_slope(model.oracle, {}, of.products, of.x, of.occupation);
      EXPECT_NEAR(found(gw::OwnSum::kTotal), (sums.sx + sums.ch).real(), tolerance);
      EXPECT_NEAR(found(gw::OwnSum::kSlope), (slopes.sx + slopes.ch).real(),
                  1e-11 * slopes.magnitude);
      EXPECT_NEAR(found(gw::OwnSum::kClosed), closed_sum(model.oracle, of), tolerance);
      if (index < 2) {
        EXPECT_NEAR(found(gw::OwnSum::kSecond), sums.sx.real(), tolerance);
        continue;
      }
      const auto other =
          oracle::gw::diagonal(model.oracle, {}, of.products, of.other_x, of.occupation);
      const auto other_slopes =
          oracle::gw::diagonal_slope(model.oracle, {}, of.products, of.other_x, of.occupation);
      EXPECT_NEAR(found(gw::OwnSum::kSecond), other.ch.real(), tolerance);
      if (!with_slope) continue;
      EXPECT_NEAR(found(gw::OwnSum::kSecondSlope), other_slopes.ch.real(),
                  1e-11 * other_slopes.magnitude);
    }
}

TEST_P(GwSigmaKernels, ResponseContainsTheSumsOfTheModel) {
  check_own_sums(GetParam(), 33, Symmetry::kNone, false, true, 810);
  check_own_sums(GetParam(), 70, Symmetry::kHermitian, false, false, 820);
  check_own_sums(GetParam(), 150, Symmetry::kHermitian, true, true, 830);
  check_own_sums(GetParam(), 97, Symmetry::kHermitian, true, false, 840);
}

// Real products take other loops than complex ones. A factor i of all products leaves M M* as it is
// and makes them complex.
TEST_P(GwSigmaKernels, ResponsesOfRealProductsAreThoseOfComplexOnes) {
  constexpr int kSize = 75;
  const RandomPoleModel model(kSize, Symmetry::kHermitian, 850);
  const Rows rows;
  auto products = test::random_complex(static_cast<std::size_t>(kLeft * kBands * kSize), 851);
  const gw::PoleChange change =
      Change(model, Symmetry::kHermitian, 852).packed(model, Symmetry::kHermitian);
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto loaded =
      kernels->pole_sums().load_changes(kernels->pole_sums().load(model.view(), {}), {&change});
  const auto responses = [&](Cplx factor) {
    for (Cplx& value : products) value = factor * value.real();
    const auto block = test::loaded_block(*kernels, {products.data(), {kLeft, kBands, kSize}});
    std::vector<double> both(2 * kLeft);
    loaded->add_response(*block,
                         {.x_ry = {rows.x_ry.data(), {kLeft, kBands}},
                          .occupation = {rows.occupation.data(), {kBands}},
                          .closed_x_ry = kClosedX_ry},
                         {{both.data(), {1, kLeft}}, {both.data() + kLeft, {1, kLeft}}});
    return both;
  };
  const std::vector<double> real = responses(1.0), complex = responses({0.0, 1.0});
  for (std::size_t i = 0; i < real.size(); ++i)
    EXPECT_NEAR(real[i], complex[i], 1e-11 * kStep * absolute_sum(model) * kBands);
}

// The sums of ranges of rows add up to those of all rows, also by difference. 1e-12 of the absolute
// terms allows for another order of 1e4 of them.
void check_row_ranges(const Device& device, Symmetry symmetry, std::uint32_t seed) {
  constexpr int kSize = 150;
  const RandomPoleModel model(kSize, symmetry, seed);
  const Rows rows;
  const auto products =
      test::random_complex(static_cast<std::size_t>(kLeft * kBands * kSize), seed + 1);
  const gw::PoleChange change = Change(model, symmetry, seed + 2).packed(model, symmetry);
  const auto kernels = gw::make_gw_kernels(device);
  const auto block = test::loaded_block(*kernels, {products.data(), {kLeft, kBands, kSize}});
  const auto whole =
      kernels->pole_sums().load_changes(kernels->pole_sums().load(model.view(), {}), {&change});
  std::vector<gw::IVec3> waves;
  for (int g = 0; g < kSize; ++g) waves.push_back({g % 7, g / 7 % 5, g / 35});
  const gw::DifferenceBox box(waves);
  struct Found {
    std::vector<double> responses = std::vector<double>(2 * kLeft),
                        own = std::vector<double>(gw::kOwnSums * kLeft);
    std::vector<Cplx> differences;
  };
  const auto add = [&](const gw::LoadedPoleChanges& changes, Found& to) {
    changes.add_response(*block,
                         {.x_ry = {rows.x_ry.data(), {kLeft, kBands}},
                          .occupation = {rows.occupation.data(), {kBands}},
                          .closed_x_ry = kClosedX_ry},
                         {{to.responses.data(), {1, kLeft}},
                          {to.responses.data() + kLeft, {1, kLeft}},
                          {to.own.data(), {1, gw::kOwnSums, kLeft}}});
    const std::vector<Cplx> sums = changes.sums_by_difference(0, kClosedX_ry, box);
    to.differences.resize(sums.size());
    for (std::size_t d = 0; d < sums.size(); ++d) to.differences[d] += sums[d];
  };
  Found all, parts;
  add(*whole, all);
  for (const auto& [begin, end] : {std::pair{0, 64}, {64, 96}, {96, kSize}})
    add(*whole->of_rows({&change}, {begin, end}), parts);
  const double scale = 1e-12 * absolute_sum(model) * kBands;
  for (std::size_t i = 0; i < all.own.size(); ++i)
    EXPECT_NEAR(parts.own[i], all.own[i], 30.0 * scale);
  for (std::size_t i = 0; i < all.responses.size(); ++i)
    EXPECT_NEAR(parts.responses[i], all.responses[i], 30.0 * kStep * scale);
  for (std::size_t d = 0; d < all.differences.size(); ++d)
    EXPECT_LE(std::abs(parts.differences[d] - all.differences[d]), kStep * scale);
}
TEST_P(GwSigmaKernels, RangesOfRowsAddUpToTheResponse) {
  check_row_ranges(GetParam(), Symmetry::kNone, 890);
  check_row_ranges(GetParam(), Symmetry::kHermitian, 900);
}

TEST_P(GwSigmaKernels, ResponseRefusesSegmentsThatDoNotEndAtTheLastBand) {
  const RandomPoleModel model(4, Symmetry::kNone, 860);
  const gw::PoleChange change = Change(model, Symmetry::kNone, 870).packed(model, Symmetry::kNone);
  const auto products = test::random_complex(8, 880);
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto block = test::loaded_block(*kernels, {products.data(), {1, 2, 4}});
  const auto loaded =
      kernels->pole_sums().load_changes(kernels->pole_sums().load(model.view(), {}), {&change});
  const std::vector<double> x(2, -1.0), empty(2, 0.0);
  for (const std::vector<std::int64_t>& ends : {std::vector<std::int64_t>{1}, {2, 2}, {1, 3}}) {
    double total = 0.0;
    EXPECT_THROW(
        loaded->add_response(
            *block,
            {.x_ry = {x.data(), {1, 2}}, .occupation = {empty.data(), {2}}, .segment_end = ends},
            {{&total, {1, 1}}, {}}),
        InvalidInput);
  }
}

}  // namespace
