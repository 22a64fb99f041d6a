// Integer sums of four phonons: their units, their rounding and their order
// (docs/theory/thermal.md 11.5).

#include "workers/thermal/kernels/four_phonon/shared_sums_4ph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace quasi::thermal {
namespace {

TEST(SharedTerm4ph, PowersOfTwoAreThoseOfTheLibrary) {
  for (int exponent = -1022; exponent <= 1023; ++exponent)
    ASSERT_EQ(power_of_two(exponent), std::ldexp(1.0, exponent)) << exponent;
}

// Terms between 2^-20 and 2^10 of a typical one lose at most half a unit each, and their sum has
// one value in any order. The sum of `low` fits 64 bits for as many terms as the units allow.
TEST(SharedTerm4ph, SumsHaveOneValueInAnyOrder) {
  const SharedUnits4ph sizes = SharedUnits4ph::of(20000.0);
  const double most = std::exp2(sizes.low_bits - 1);
  EXPECT_LT(most * 20000.0, std::exp2(63));
  EXPECT_GT(most * 20000.0 * 8.0, std::exp2(63)) << "bits are not lost without need";
  EXPECT_EQ(SharedUnits4ph::of(54.0).low_bits, 50) << "a double holds the term";
  std::mt19937_64 random(23);
  std::uniform_real_distribution<double> exponent(-20.0, 10.0), sign(-1.0, 1.0);
  std::vector<double> units(20000);
  for (double& u : units)
    u = std::copysign(std::exp2(sizes.typical_bits() + exponent(random)), sign(random));
  bool some_high = false;
  const auto sum_of = [&] {
    SharedTerm4ph sum{0, 0};
    for (const double u : units) {
      const SharedTerm4ph term = SharedTerm4ph::of(u, sizes.low_bits);
      EXPECT_LE(std::abs(static_cast<double>(term.low)), most);
      sum.low += term.low;
      sum.high += term.high;
      some_high = some_high || term.high != 0;
    }
    return sum;
  };
  const SharedTerm4ph forward = sum_of();
  std::shuffle(units.begin(), units.end(), random);
  const SharedTerm4ph shuffled = sum_of();
  EXPECT_EQ(forward.low, shuffled.low);
  EXPECT_EQ(forward.high, shuffled.high);
  EXPECT_TRUE(some_high);
  long double exact = 0.0L;
  for (const double u : units) exact += u;
  // Six standard errors of the roundings, √(20000/12) = 41 units, and the last bit of a double of
  // 2^59 units.
  EXPECT_NEAR(forward.units(sizes.low_bits), static_cast<double>(exact), 6.0 * 41.0 + 64.0);
}

/// Tables of one point with a star of two points, and one branch.
struct SmallTables {
  std::vector<std::int32_t> star{0, 0}, star_size{2}, precedence{0, 0};
  Tables4ph tables{};

  SmallTables() {
    tables.n_points = 1;
    tables.n_branches = 1;
    tables.n_temperatures = 1;
    tables.exchange = {
        .star = star.data(), .star_size = star_size.data(), .precedence = precedence.data()};
  }
};

// A process with the mean rate of its row has typical_bits bits, for the largest star. A channel
// without processes takes the finest scale there is.
TEST(SharedScales4ph, FollowTheMeanOfTheRow) {
  const SmallTables small;
  const SumLayout4ph layout{1};
  std::vector<double> sums(static_cast<std::size_t>(kChannels4ph * layout.size()), 0.0);
  // 4 processes of ++ with the rate 3·2^-9 in all, and 8 of +- with 2^12.
  const auto set = [&](int channel, double rate, double processes) {
    double* row = &sums[static_cast<std::size_t>(channel * layout.size())];
    row[layout.normal(0)] = 0.25 * rate;
    row[layout.umklapp(0)] = 0.75 * rate;
    row[layout.weighted_phase_space(0)] = 2.0 * rate;
    row[layout.phase_space()] = 4.0 * rate;
    row[layout.six_count()] = 6.0 * processes;
    row[layout.evaluations()] = processes;
  };
  set(0, 3.0 * std::exp2(-9), 4.0);
  set(1, std::exp2(12), 8.0);
  const SharedScales4ph scales = SharedScales4ph::of(small.tables, sums, 3);
  const int bits = scales.units.typical_bits();
  ASSERT_EQ(scales.scale.size(), 3u);
  EXPECT_EQ(scales.scale[0].rate, bits + 9);  // 2·3·2^-9/4 lies in [2^-9, 2^-8)
  EXPECT_EQ(scales.scale[0].weighted_phase_space, bits + 8);
  EXPECT_EQ(scales.scale[0].phase_space, bits + 7);
  EXPECT_EQ(scales.scale[1].rate, bits - 10);
  EXPECT_EQ(scales.scale[2].rate, scales.scale[0].rate);
  EXPECT_DOUBLE_EQ(scales.processes, 4.0);
}

// Sums of integers come back as numbers, divided by the points of the star, and the words are clear
// for the next batch. The sum of the blocks counts in ++ and +- alone.
TEST(AddShared4ph, ReturnsTheSumsOfTheRow) {
  const SmallTables small;
  const SumLayout4ph layout{1};
  const auto n = static_cast<std::size_t>(kChannels4ph * layout.size());
  std::vector<unsigned long long> words(2 * n, 0);
  std::vector<SharedScale4ph> scale(
      kChannels4ph, SharedScale4ph{.rate = 40, .weighted_phase_space = 35, .phase_space = 30});
  std::vector<double> sums(n, 1.0);
  const SharedSums4ph shared{words.data(), scale.data(), SharedUnits4ph{.low_bits = 44}};
  const double value[] = {-0.75, 100.0, 0.5, 0.25};
  const int exponent[] = {40, 40, 35, 30};
  for (int channel = 0; channel < kChannels4ph; ++channel) {
    unsigned long long* row = &words[static_cast<std::size_t>(2 * channel * layout.size())];
    for (int v = 0; v < 4; ++v) {
      const SharedTerm4ph term = SharedTerm4ph::of(value[v] * power_of_two(exponent[v]), 44);
      row[2 * v] = static_cast<unsigned long long>(term.low);
      row[2 * v + 1] = static_cast<unsigned long long>(term.high);
    }
    row[2 * layout.six_count()] = 7 * SharedSums4ph::kCountUnits;
  }
  EXPECT_NE(words[3], 0u) << "one term needs both words";
  const AddShared4ph add{small.tables, shared, sums.data()};
  for (std::size_t i = 0; i < n; ++i) add(static_cast<std::int64_t>(i));
  for (int channel = 0; channel < kChannels4ph; ++channel) {
    const double* row = &sums[static_cast<std::size_t>(channel * layout.size())];
    const double own = channel == static_cast<int>(Channel4ph::kSplitting) ? 0.0 : 1.0;
    for (int v = 0; v < 4; ++v) EXPECT_EQ(row[v], own + value[v] / 2.0) << channel << " " << v;
    EXPECT_EQ(row[layout.six_count()], own + 6.0 * 7.0 / 2.0);
    EXPECT_EQ(row[layout.evaluations()], own);
  }
  EXPECT_EQ(std::count(words.begin(), words.end(), 0u), static_cast<std::ptrdiff_t>(words.size()));
}

}  // namespace
}  // namespace quasi::thermal
