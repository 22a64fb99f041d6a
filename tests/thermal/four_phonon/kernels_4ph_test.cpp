#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "bench/published/published_sums_4ph.hpp"
#include "tests/support/every_device.hpp"
#include "tests/thermal/four_phonon/random_crystal_4ph.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/physics/physical_constants.hpp"
#include "workers/thermal/solver/four_phonon/scattering_4ph.hpp"

namespace quasi::thermal {
namespace {

using test::random_crystal_4ph;
using test::RandomCrystal4;
constexpr auto& kTemperatures_k = test::kRandomTemperatures_k;

class Kernels4ph : public quasi::test::OnEveryDevice {
 protected:
  /// @param exchange  every point has a row, and λ and λ' change places
  void check(int n_atoms, std::array<int, 3> mesh, const Rules4ph& rules,
             oracle::Settings4ph settings, bool exchange = false) {
    RandomCrystal4 c =
        random_crystal_4ph(n_atoms, mesh, static_cast<unsigned>(7 * n_atoms + mesh[0]), rules);
    const auto nq = static_cast<std::size_t>(c.problem.mesh.size());
    if (exchange) test::take_all_points(c, true);
    const auto kernels = make_scattering_kernels_4ph(GetParam(), 0);
    kernels->load(c.problem);
    const auto sums = kernels->sums(0, static_cast<std::int32_t>(c.problem.mesh.size()));
    const SumLayout4ph layout{3};
    settings.hbar_over_kb = kCodata2018.hbar_over_kb_k_ps();
    const int nb = 3 * n_atoms;
    double found[3] = {}, normal = 0.0, all = 0.0;
    for (std::size_t point = 0; point < c.problem.point.size(); point += exchange ? nq / 2 : 1)
      for (int s = 0; s<nb; s += n_atoms> 2 ? 5 : 2)
        for (int t = 0; t < 3; ++t) {
          settings.temperature_k = kTemperatures_k[t];
          const auto expected =
              oracle::four_phonon_sums(c.oracle, settings, c.problem.point[point], s);
          for (int channel = 0; channel < 3; ++channel) {
            const double* ours = &sums[((point * nb + s) * 3 + channel) * layout.size()];
            // Rounding: sums of some thousand terms of like sign, |V|² of 48·81 terms.
            const double rate = ours[layout.normal(t)] + ours[layout.umklapp(t)];
            EXPECT_NEAR(rate, expected[channel].rate, 1e-10 * std::abs(expected[channel].rate))
                << n_atoms << " atoms, channel " << channel;
            EXPECT_NEAR(ours[layout.normal(t)], expected[channel].normal,
                        1e-10 * std::abs(expected[channel].rate));
            normal += expected[channel].normal;
            all += expected[channel].rate;
            EXPECT_NEAR(ours[layout.weighted_phase_space(t)], expected[channel].phase_space,
                        1e-10 * std::abs(expected[channel].phase_space));
            EXPECT_NEAR(ours[layout.six_count()], 6.0 * expected[channel].tuples, 1e-6);
            found[channel] += expected[channel].tuples;
          }
        }
    for (const double n : found)
      EXPECT_GT(n, 0.0) << "a channel without any process checks nothing";
    EXPECT_GT(normal, 0.01 * all);
    EXPECT_LT(normal, 0.99 * all);
  }
};

/// Builds the whole matrix of some points from tiles of total momenta.
std::vector<double> build(ScatteringKernels4ph& kernels, const Problem4ph& problem,
                          CollisionRequest4ph request, std::int32_t tile) {
  request.row_size.assign(
      static_cast<std::size_t>((request.last_point - request.first_point) * problem.n_branches),
      1e-9);
  kernels.begin_collision(request);
  const auto n_q = static_cast<std::int32_t>(problem.mesh.size());
  for (int attempt = 0; attempt < 3; ++attempt) {  // the guess is far too low on purpose
    for (std::int32_t q = 0; q < n_q; q += tile) kernels.add_collision(q, std::min(n_q, q + tile));
    auto out = kernels.finish_collision();
    if (!out.empty()) return out;
  }
  ADD_FAILURE() << "the unit of the rows was not found";
  return {};
}

// The collision operator against one written down process by process, in both forms.
TEST_P(Kernels4ph, CollisionMatrixMeetsOracle) {
  for (const bool reference : {false, true})
    for (const bool symmetric : {false, true}) {
      Rules4ph rules{.scale_broad = 0.7, .cut = 1.3, .window_norm = 0.9, .sigma_floor_rad_ps = 0.3};
      oracle::Settings4ph settings{
          .scale_broad = 0.7, .cut = 1.3, .delta_divisor = 0.9, .least_sigma = 0.3};
      if (reference) {
        rules = {.broadening = Broadening::kAdaptiveMax,
                 .scale_broad = 0.4,
                 .tie_tolerance_rad_ps = 0.0,
                 .sigma_floor_rad_ps = 0.4,
                 .sigma_at_floor_rad_ps = 1.0 / std::sqrt(units::kPi),
                 .omega_floor_rad_ps = 8.0,
                 .exact_weights = false};
        settings = {.convention = oracle::Convention::kReference,
                    .scale_broad = 0.4,
                    .reference_small_sigma = 0.4,
                    .slowest_partner = 8.0};
      }
      settings.hbar_over_kb = kCodata2018.hbar_over_kb_k_ps();
      settings.temperature_k = kTemperatures_k[1];
      settings.symmetric_occupation = symmetric;
      const RandomCrystal4 c = random_crystal_4ph(2, {2, 3, 2}, 11, rules);
      const auto kernels = make_scattering_kernels_4ph(GetParam(), 0);
      kernels->load(c.problem);
      const auto out =
          build(*kernels, c.problem,
                {.temperature = 1, .symmetric = symmetric, .first_point = 0, .last_point = 2}, 5);
      std::mt19937 random(3);
      std::uniform_real_distribution<double> unit(-1.0, 1.0);
      std::vector<double> f(c.problem.omega_rad_ps.size() * 3);
      for (double& x : f) x = unit(random);
      const auto ours = kernels->apply_collision(f);
      for (int point = 0; point < 2; ++point)
        for (int s = 0; s < 6; ++s) {
          std::vector<double> row(c.problem.omega_rad_ps.size(), 0.0);
          const auto sums =
              oracle::four_phonon_sums(c.oracle, settings, c.problem.point[point], s, &row);
          const double rate = sums[0].rate + sums[1].rate + sums[2].rate;
          EXPECT_NEAR(out[point * 6 + s], rate, 1e-10 * std::abs(rate));
          for (int d = 0; d < 3; ++d) {
            double expected = 0.0, scale = 0.0;
            for (std::size_t mode = 0; mode < row.size(); ++mode) {
              expected += row[mode] * f[3 * mode + d];
              scale += std::abs(row[mode] * f[3 * mode + d]);
            }
            EXPECT_NEAR(ours[(point * 6 + s) * 3 + d], expected, 1e-10 * scale)
                << reference << symmetric;
          }
        }
    }
}

// Uniform draws find the sums within six of their own standard errors, whatever the split of the
// draws. The sets are single modes here: a draw is a mean over degenerate sets, and those of the
// random crystal are degenerate in name only.
TEST_P(Kernels4ph, UniformDrawsMeetTheSums) {
  RandomCrystal4 c =
      random_crystal_4ph(2, {2, 3, 2}, 11, {.scale_broad = 0.7, .sigma_floor_rad_ps = 0.3});
  std::iota(c.problem.set.begin(), c.problem.set.end(), 0);
  const auto kernels = make_scattering_kernels_4ph(GetParam(), 0);
  kernels->load(c.problem);
  const SumLayout4ph exact{3};
  const UniformLayout4ph uniform{3};
  const auto sums = kernels->sums(0, 12);
  constexpr std::int64_t kDraws = 60000;
  const auto first = kernels->sample_uniform(17, 0, kDraws / 3, true);
  const auto second = kernels->sample_uniform(17, kDraws / 3, kDraws, true);
  const double box = 12.0 * 12.0 * 216.0;
  int met = 0;
  for (std::size_t i = 0; i < sums.size() / static_cast<std::size_t>(exact.size()); ++i)
    for (int t = 0; t < 3; ++t) {
      const double* e = &sums[i * exact.size()];
      const double rate = e[exact.normal(t)] + e[exact.umklapp(t)];
      const auto sum = [&](int slot) {
        return first[i * uniform.size() + slot] + second[i * uniform.size() + slot];
      };
      const double mean = sum(uniform.rate(t)) / kDraws;
      const double error = std::sqrt((sum(uniform.square(t)) / kDraws - mean * mean) / kDraws);
      if (sum(uniform.evaluations()) > 50.0) {
        EXPECT_NEAR(box * mean, rate, 6.0 * box * error);
        ++met;
      }
    }
  EXPECT_GT(met, 20);
}

// Processes drawn with certainty give the sums exactly, and the weights alone what weighs the draw.
TEST_P(Kernels4ph, SamplesMeetTheSums) {
  const RandomCrystal4 c =
      random_crystal_4ph(2, {2, 3, 2}, 11, {.scale_broad = 0.7, .sigma_floor_rad_ps = 0.3});
  const auto kernels = make_scattering_kernels_4ph(GetParam(), 0);
  kernels->load(c.problem);
  const SumLayout4ph exact{3};
  const ThinnedLayout4ph thinned{3};
  const auto sums = kernels->sums(0, 12);
  std::vector<double> weight_sum;
  const auto weights = kernels->thinned_sums({.seed = 3}, 0, 12);
  const auto n = sums.size() / static_cast<std::size_t>(exact.size());
  for (std::size_t i = 0; i < n; ++i)
    for (int t = 0; t < 3; ++t)
      weight_sum.push_back(weights[i * thinned.size() + thinned.weight(t)]);
  const auto all =
      kernels->thinned_sums({.seed = 3, .draws = 1e300, .weight_sum = weight_sum.data()}, 0, 12);
  const auto some =
      kernels->thinned_sums({.seed = 3, .draws = 600.0, .weight_sum = weight_sum.data()}, 0, 12);
  double drawn = 0.0;
  int met = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double* e = &sums[i * exact.size()];
    const double* a = &all[i * thinned.size()];
    const double* s = &some[i * thinned.size()];
    drawn += s[thinned.evaluations()];
    EXPECT_EQ(a[thinned.evaluations()], e[exact.evaluations()]);
    EXPECT_EQ(s[thinned.six_count()], e[exact.six_count()]);
    for (int t = 0; t < 3; ++t) {
      const double rate = e[exact.normal(t)] + e[exact.umklapp(t)];
      EXPECT_NEAR(a[thinned.rate(t)], rate, 1e-11 * std::abs(rate));
      EXPECT_NEAR(a[thinned.spread_rate(t)], 0.0, 1e-11 * rate * rate);
      EXPECT_NEAR(s[thinned.weighted_phase_space(t)], e[exact.weighted_phase_space(t)],
                  1e-11 * std::abs(rate));
      const double ratio = s[thinned.rate(t)] / s[thinned.weight(t)];
      const double spread = s[thinned.spread_rate(t)] - 2.0 * ratio * s[thinned.spread_both(t)] +
                            ratio * ratio * s[thinned.spread_weight(t)];
      if (s[thinned.evaluations()] > 50.0) {
        EXPECT_NEAR(
            weight_sum[3 * i + t] * ratio, rate,
            6.0 * weight_sum[3 * i + t] / s[thinned.weight(t)] * std::sqrt(spread) + 1e-11 * rate);
        ++met;
      }
    }
  }
  EXPECT_GT(met, 30);
  EXPECT_GT(drawn, 600.0) << "something must have been drawn";
  EXPECT_LT(drawn, 0.9 * std::accumulate(sums.begin(), sums.end(), 0.0,
                                         [&, i = std::size_t{0}](double x, double) mutable {
                                           const double value =
                                               static_cast<int>(i % exact.size()) ==
                                                       exact.evaluations()
                                                   ? sums[i]
                                                   : 0.0;
                                           ++i;
                                           return x + value;
                                         }))
      << "and something left out";
}

// The published strategies give the numbers of the factorised sums, with lists in one piece or in
// many.
TEST_P(Kernels4ph, StrategiesAgree) {
  constexpr std::int64_t kBudget_bytes = std::int64_t{1} << 30;
  for (const bool reference : {false, true}) {
    Rules4ph rules{.scale_broad = 0.7, .sigma_floor_rad_ps = 0.3};
    if (reference)
      rules = {.broadening = Broadening::kAdaptiveMax,
               .scale_broad = 0.4,
               .tie_tolerance_rad_ps = 0.0,
               .sigma_floor_rad_ps = 0.4,
               .sigma_at_floor_rad_ps = 1.0 / std::sqrt(units::kPi),
               .exact_weights = false};
    const RandomCrystal4 c = random_crystal_4ph(2, {2, 3, 2}, 11, rules);
    const auto kernels = make_scattering_kernels_4ph(GetParam(), 0);
    kernels->load(c.problem);
    const auto expected = kernels->sums(0, 12);
    for (const auto strategy : {PublishedStrategy::kListHost, PublishedStrategy::kListDevice,
                                PublishedStrategy::kModeByMode, PublishedStrategy::kTestAndSum}) {
      StrategySeconds seconds;
      const auto sums = published_sums_4ph(GetParam(), c.problem, strategy, kBudget_bytes, seconds);
      ASSERT_EQ(sums.size(), expected.size());
      for (std::size_t i = 0; i < sums.size(); ++i)
        EXPECT_NEAR(sums[i], expected[i], 1e-10 * std::abs(expected[i]))
            << static_cast<int>(strategy) << " " << i;
    }
  }
}

// One point alone, or tiles of another size: the same bits.
TEST_P(Kernels4ph, CollisionMatrixDoesNotDependOnTheCut) {
  const RandomCrystal4 c =
      random_crystal_4ph(2, {2, 3, 2}, 11, {.scale_broad = 0.7, .sigma_floor_rad_ps = 0.3});
  const auto kernels = make_scattering_kernels_4ph(GetParam(), 0);
  kernels->load(c.problem);
  std::vector<double> f(c.problem.omega_rad_ps.size() * 3);
  for (std::size_t i = 0; i < f.size(); ++i) f[i] = std::sin(static_cast<double>(i));
  const auto both_out =
      build(*kernels, c.problem, {.symmetric = true, .first_point = 0, .last_point = 2}, 12);
  const auto both = kernels->apply_collision(f);
  const auto one_out =
      build(*kernels, c.problem, {.symmetric = true, .first_point = 1, .last_point = 2}, 12);
  const auto one = kernels->apply_collision(f);
  EXPECT_TRUE(std::equal(one.begin(), one.end(), both.begin() + 18));
  EXPECT_TRUE(std::equal(one_out.begin(), one_out.end(), both_out.begin() + 6));
  EXPECT_GE(kernels->collision_points_that_fit(), 2);
}

constexpr std::array<int, 3> kMesh[] = {{}, {3, 2, 2}, {2, 2, 2}, {2, 1, 3}, {1, 2, 2}};

TEST_P(Kernels4ph, MeetOracleWithFormalWeights) {
  for (int n_atoms = 1; n_atoms <= 4; ++n_atoms) {
    Rules4ph rules{.scale_broad = 0.7, .cut = 1.3, .window_norm = 0.9, .sigma_floor_rad_ps = 0.3};
    check(n_atoms, kMesh[n_atoms], rules,
          {.scale_broad = 0.7, .cut = 1.3, .delta_divisor = 0.9, .least_sigma = 0.3});
  }
}

// Each two points visited from one side only, the other's rows fed from there.
TEST_P(Kernels4ph, ExchangedPhononsMeetOracle) {
  for (int n_atoms = 1; n_atoms <= 4; ++n_atoms)
    check(n_atoms, kMesh[n_atoms],
          {.scale_broad = 0.7, .cut = 1.3, .window_norm = 0.9, .sigma_floor_rad_ps = 0.3},
          {.scale_broad = 0.7, .cut = 1.3, .delta_divisor = 0.9, .least_sigma = 0.3}, true);
}

// FP32 in the sum over pairs alone: each rate to its rounding (|V|² of up to 48·81 terms of either
// sign, 6e-8 each), every other sum to the last bits. All forms of the kernel but the one of
// silicon (Conductivity4ph.MixedPrecision…).
TEST_P(Kernels4ph, MixedPrecisionRoundsMatrixElementsAlone) {
  for (int n_atoms = 1; n_atoms <= 5; ++n_atoms) {
    RandomCrystal4 c =
        random_crystal_4ph(n_atoms, n_atoms < 5 ? kMesh[n_atoms] : kMesh[4], 3,
                           {.scale_broad = 0.7, .cut = 1.3, .sigma_floor_rad_ps = 0.3});
    const auto sums = [&](Precision precision) {
      c.problem.precision = precision;
      const auto kernels = make_scattering_kernels_4ph(GetParam(), 0);
      kernels->load(c.problem);
      return kernels->sums(0, static_cast<std::int32_t>(c.problem.mesh.size()));
    };
    const auto exact = sums(Precision::kDouble), mixed = sums(Precision::kMixed);
    const SumLayout4ph layout{3};
    double worst = 0.0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const int slot = static_cast<int>(i) % layout.size();
      const bool rate = slot < 9 && slot % 3 != 2;
      if (rate && exact[i] > 0.0) worst = std::max(worst, std::fabs(mixed[i] / exact[i] - 1.0));
      if (!rate) {
        EXPECT_NEAR(mixed[i], exact[i], 1e-13 * std::fabs(exact[i])) << n_atoms << " atoms, " << i;
      }
    }
    EXPECT_GT(worst, 1e-10) << n_atoms;
    EXPECT_LT(worst, 2e-5) << n_atoms;
  }
}

TEST_P(Kernels4ph, MeetOracleWithReferenceConventions) {
  for (int n_atoms = 1; n_atoms <= 4; ++n_atoms) {
    Rules4ph rules{.broadening = Broadening::kAdaptiveMax,
                   .scale_broad = 0.4,
                   .tie_tolerance_rad_ps = 0.0,
                   .sigma_floor_rad_ps = 0.4,
                   .sigma_at_floor_rad_ps = 1.0 / std::sqrt(units::kPi),
                   .omega_floor_rad_ps = 8.0,
                   .exact_weights = false};
    check(n_atoms, kMesh[n_atoms], rules,
          {.convention = oracle::Convention::kReference,
           .scale_broad = 0.4,
           .reference_small_sigma = 0.4,
           .slowest_partner = 8.0});
  }
}

// However the total momenta are cut into calls, a whole mesh in one call or in pieces added up,
// each Q's contribution is one number: the sums agree to the bit when added in the same order. The
// number of threads changes no bit either, although threads add to the rows of one another.
TEST_P(Kernels4ph, SumsDoNotDependOnTheCut) {
  for (const bool exchange : {false, true}) {
    RandomCrystal4 c =
        random_crystal_4ph(2, {3, 3, 2}, 5, {.scale_broad = 0.7, .sigma_floor_rad_ps = 0.3});
    if (exchange) test::take_all_points(c, true);
    const auto kernels = make_scattering_kernels_4ph(GetParam(), 0);
    kernels->load(c.problem);
    const int threads = omp_get_max_threads();
    omp_set_num_threads(3);
    const auto whole = kernels->sums(0, 18);
    omp_set_num_threads(1);
    std::vector<double> added(whole.size(), 0.0);
    for (std::int32_t q = 0; q < 18; ++q) {
      const auto one = kernels->sums(q, q + 1);
      for (std::size_t i = 0; i < one.size(); ++i) added[i] += one[i];
    }
    omp_set_num_threads(threads);
    EXPECT_EQ(whole, added) << exchange;
  }
}

// Memory decides how many total momenta run together and how many processes wait in the lists for
// the rows of λ'' and λ'''. The sums have the same bits with any budget that suffices.
TEST_P(Kernels4ph, MemoryChangesNoBit) {
  RandomCrystal4 c =
      random_crystal_4ph(2, {3, 3, 2}, 5, {.scale_broad = 0.7, .sigma_floor_rad_ps = 0.3});
  test::take_all_points(c, true);
  const auto sums = [&](std::int64_t budget_bytes) {
    const auto kernels = make_scattering_kernels_4ph(GetParam(), budget_bytes);
    kernels->load(c.problem);
    return kernels->sums(0, 18);
  };
  const auto expected = sums(0);
  const std::int64_t step_kib = GetParam().backend == Backend::kCpu ? 4096 : 64;
  int suffice = 0;
  for (std::int64_t kib = 64 << 10; kib <= 80 << 10; kib += step_kib) {
    try {
      EXPECT_EQ(sums(kib << 10), expected) << kib << " KiB";
      ++suffice;
    } catch (const OutOfMemory&) {
    }
  }
  EXPECT_GT(suffice, 3);
}

QUASI_ON_EVERY_DEVICE(Kernels4ph);

}  // namespace
}  // namespace quasi::thermal
