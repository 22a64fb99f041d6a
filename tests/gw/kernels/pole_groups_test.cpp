#include "workers/gw/kernels/pole_sums/diagonal/pole_groups.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/plasmon_pole.hpp"

namespace {

using namespace quasi;

// Each smooth row's rational functions are the reciprocals they stand for.
TEST(PoleGroups, SmoothRowsReproduceTheirReciprocals) {
  const std::vector<double> x{0.0, 0.7, 3.0, 11.0, 40.0};
  const double occupation = 1.0;
  const auto groups = gw::make_pole_groups({x.data(), {1, 1, 5}}, {&occupation, {1}}, 2.0, {},
                                           gw::ScreenedExchange::kNotWanted);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].n_energies + groups[1].n_energies, 5);
  for (const auto& group : groups) {
    const int k = group.n_energies;
    ASSERT_EQ(group.smooth_row.size(), static_cast<std::size_t>(gw::smooth_row_length(k)));
    ASSERT_TRUE(group.direct_band.empty());
    for (double tau : {0.0, 0.01, 1.0, 300.0})
      for (int j = 0; j < k; ++j) {
        double d = 1.0, numerator = 0.0;
        for (int m = 0; m < k; ++m) d += group.smooth_row[m] * std::pow(tau, m + 1);
        for (int m = 0; m < k; ++m) numerator += group.smooth_row[k + j * k + m] * std::pow(tau, m);
        EXPECT_NEAR(numerator / d * (1.0 + x[group.first_energy + j] * tau), 2.0, 1e-14);
      }
  }
}

// A band is smooth only if all energies of the group keep to one side; partly filled bands never
// are.
TEST(PoleGroups, SortsRowsBySide) {
  const std::vector<double> x{0.1, 0.2, -0.1, 0.2, -3.0, -2.0, -0.01, -0.02, 1.0, 2.0};
  const std::vector<double> occupation{1.0, 1.0, 0.0, 0.0, 0.5};
  const auto groups = gw::make_pole_groups({x.data(), {1, 5, 2}}, {occupation.data(), {5}}, 1.0, {},
                                           gw::ScreenedExchange::kNotWanted);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].smooth_band, (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(groups[0].direct_band, (std::vector<std::int32_t>{1, 3, 4}));
  const auto with_sx = gw::make_pole_groups({x.data(), {1, 5, 2}}, {occupation.data(), {5}}, 1.0,
                                            {}, gw::ScreenedExchange::kWanted);
  EXPECT_EQ(with_sx[0].smooth_band, (std::vector<std::int32_t>{2}));
  EXPECT_EQ(with_sx[0].split_band, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(with_sx[0].direct_band, (std::vector<std::int32_t>{1, 3, 4}));
}

TEST(PoleGroups, RefusesEnergiesThatAreNotFinite) {
  const double x = std::numeric_limits<double>::quiet_NaN(), occupation = 1.0;
  EXPECT_THROW(gw::make_pole_groups({&x, {1, 1, 1}}, {&occupation, {1}}, 1.0, {},
                                    gw::ScreenedExchange::kWanted),
               InvalidInput);
}

// The intervals of poles say what the formulas say, away from their ends by a rounding; rules
// switched off and on entirely among them.
TEST(PoleRules, IntervalsAreTheFormulas) {
  std::mt19937_64 generator(5);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  int dropped = 0, kept = 0;
  for (const double cut : {0.0, 0.5, 1.0, 1.5, 4.0})
    for (const double ratio : {1.5, 3.0, 500.0})
      for (const double half_width : {0.0, 0.037, 2.0})
        for (int i = 0; i < 3000; ++i) {
          const double x = 3.0 * uniform(generator),
                       pole = i % 50 == 0 ? gw::kStaticPole_ry
                                          : std::exp(3.0 * uniform(generator)) *
                                                (i % 3 == 0 ? std::abs(x) : 1.0);
          if (pole == 0.0) continue;
          const auto inside = [&](gw::PoleInterval interval, double share) {
            return pole * share >= interval.low && pole * share <= interval.high;
          };
          const auto empty = gw::dropped_empty(x, half_width, ratio),
                     occupied = gw::dropped_occupied(x, cut);
          const bool formula_empty = gw::near_pole(x, pole, half_width, ratio);
          const bool formula_occupied =
              gw::pole_quotient_occupied(x, pole, cut).denominator == x - pole;
          for (const auto& [interval, formula] :
               {std::pair{empty, formula_empty}, {occupied, formula_occupied}}) {
            if (inside(interval, 1.0 + 1e-12) != inside(interval, 1.0 - 1e-12))
              continue;  // at an end
            EXPECT_EQ(inside(interval, 1.0), formula)
                << x << ' ' << pole << ' ' << cut << ' ' << ratio << ' ' << half_width;
            ++(formula ? dropped : kept);
          }
        }
  EXPECT_GT(dropped, 10000);
  EXPECT_GT(kept, 10000);
}

}  // namespace
