// Stochastic pseudobands in place of high states (docs/theory/gw.md 9.3).

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/gw/support/pseudoband_crystals.hpp"
#include "tests/gw/support/small_silicon.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/output/summary.hpp"
#include "workers/gw/solver/mean_field/pseudobands.hpp"
#include "workers/gw/solver/pseudoband_errors/statistical_errors.hpp"

namespace quasi::gw {
namespace {

using test::edges;
using test::eight_atoms;
using test::Statistics;

/// Pseudobands of one mean field, made for many seeds.
class Pseudobands : public testing::Test {
 protected:
  static MeanField replaced(const MeanField& given, const PseudobandOptions& options,
                            PseudobandUse use) {
    MeanField field = given;
    field.waves = pseudobands(given.waves, plan_pseudobands(given, options, true), use);
    return field;
  }
  static std::vector<Cplx> coefficients(const MeanField& field) {
    return field.waves.waves[0].coefficients[0];
  }
};

// The weights are a partition of unity that keeps the mean energy. Moved nodes reproduce 1/(x + b)
// to fourth order in the width, a few 1e-3 of it at F = 0.2; unmoved ones err by h²/3, a per cent.
TEST(EnergyWindows, SquaresAddUpToOneAndKeepTheFirstMoments) {
  const EnergyWindows windows(0.5, 10.0, 0.2);
  for (double x = 0.5; x <= 10.0; x += 0.037) {
    double sum = 0.0, mean = 0.0, inverse = 0.0, unmoved = 0.0, shifted = 0.0;
    for (std::size_t k = 0; k < windows.size(); ++k) {
      const double weight = windows.weight(k, x);
      sum += weight;
      mean += weight * windows.node(k);
      inverse += weight / windows.energy(k, 0.0);
      unmoved += weight / windows.node(k);
      shifted += weight / (windows.energy(k, 1.2) + 1.2);
    }
    EXPECT_NEAR(sum, 1.0, 1e-13) << x;
    EXPECT_NEAR(mean, x, 1e-12 * x) << x;
    EXPECT_NEAR(inverse * x, 1.0, 2e-3) << x;
    EXPECT_NEAR(shifted * (x + 1.2), 1.0, 2e-3) << x;
    EXPECT_GT(unmoved * x, 1.0 + 8e-3) << x;
  }
}

TEST_F(Pseudobands, ProtectedStatesAndTheirOrthogonalComplementStay) {
  const test::SmallSilicon silicon(eight_atoms());
  const PseudobandOptions options{.vectors = 2};
  const PseudobandPlan plan = plan_pseudobands(silicon.field, options, true);
  ASSERT_FALSE(plan.keeps_all());
  EXPECT_LT(plan.bands(), plan.given);
  EXPECT_LT(plan.identity_error, 1e-13);
  const MeanField made = replaced(silicon.field, options, PseudobandUse::kScreening);
  const std::size_t n_pw = made.waves.waves[0].g.size();
  const std::vector<Cplx> given = coefficients(silicon.field), now = coefficients(made);
  for (int band = 0; band < plan.kept; ++band) {
    EXPECT_EQ(made.waves.energy(0, 0, band), silicon.field.waves.energy(0, 0, band));
    const auto at = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(band) * n_pw);
    EXPECT_TRUE(std::equal(given.begin() + at,
                           given.begin() + at + std::ssize(made.waves.waves[0].g),
                           now.begin() + at));
  }
  // A replaced state n has Σ_k |⟨n|ξ_kr⟩|² = 1/N_ξ for each r, and a protected one has 0.
  for (const int band : {0, plan.kept - 1, plan.kept, plan.given - 1}) {
    double sum = 0.0;
    for (int row = plan.kept; row < plan.bands(); ++row) {
      Cplx overlap;
      for (std::size_t g = 0; g < n_pw; ++g)
        overlap += std::conj(given[static_cast<std::size_t>(band) * n_pw + g]) *
                   now[static_cast<std::size_t>(row) * n_pw + g];
      sum += std::norm(overlap);
    }
    EXPECT_NEAR(sum, band < plan.kept ? 0.0 : 1.0, 1e-11) << band;
  }
}

// Σ with three times the vectors of χ has three times the random bands, in blocks of equal size.
// A replaced state n still has Σ_kr |⟨n|ξ_kr⟩|² = 1, exactly, because θ is ±1 here.
TEST_F(Pseudobands, SigmaTakesAMultipleOfTheVectors) {
  const test::SmallSilicon silicon(eight_atoms());
  PseudobandOptions options{.vectors = 4, .sigma_factor = 3, .blocks = 4};
  const PseudobandPlan of_chi = plan_pseudobands(silicon.field, options, true),
                       of_sigma = plan_of_sigma(of_chi);
  ASSERT_FALSE(of_chi.keeps_all());
  EXPECT_EQ(of_sigma.kept, of_chi.kept);
  EXPECT_EQ(of_sigma.bands() - of_sigma.kept, 3 * (of_chi.bands() - of_chi.kept));
  EXPECT_EQ(of_sigma.bands_of_block(3).second, of_sigma.bands());
  const Wavefunctions made = pseudobands(silicon.field.waves, of_sigma, PseudobandUse::kSelfEnergy);
  ASSERT_EQ(made.n_bands, of_sigma.bands());
  const std::size_t n_pw = made.waves[0].g.size();
  const std::vector<Cplx> given = coefficients(silicon.field);
  const StateCoefficients& now = made.waves[0].coefficients[0];
  for (const int band : {of_sigma.kept - 1, of_sigma.kept, of_sigma.given - 1}) {
    double sum = 0.0;
    for (int row = of_sigma.kept; row < of_sigma.bands(); ++row) {
      Cplx overlap;
      for (std::size_t g = 0; g < n_pw; ++g)
        overlap += std::conj(given[static_cast<std::size_t>(band) * n_pw + g]) *
                   now[static_cast<std::size_t>(row) * n_pw + g];
      sum += std::norm(overlap);
    }
    EXPECT_NEAR(sum, band < of_sigma.kept ? 0.0 : 1.0, 1e-11) << band;
  }
  options.left_out = 1;
  const std::vector<int> without =
      plan_of_sigma(plan_pseudobands(silicon.field, options, true)).chosen;
  EXPECT_EQ(without, (std::vector<int>{0, 1, 2, 6, 7, 8, 9, 10, 11}));
}

// A slice with no more states than vectors is kept as it is, so that many vectors keep everything.
TEST_F(Pseudobands, FullSlicesAreKeptExactly) {
  const test::SmallSilicon silicon(eight_atoms());
  const PseudobandPlan few = plan_pseudobands(silicon.field, {.vectors = 1}, true),
                       more = plan_pseudobands(silicon.field, {.vectors = 10}, true),
                       all = plan_pseudobands(silicon.field, {.vectors = 1000}, true);
  EXPECT_GT(more.kept, few.kept);
  EXPECT_TRUE(all.keeps_all());
  const MeanField made = replaced(silicon.field, {.vectors = 1000}, PseudobandUse::kScreening);
  EXPECT_EQ(made.waves.n_bands, silicon.field.waves.n_bands);
  EXPECT_EQ(coefficients(made), coefficients(silicon.field));
  EXPECT_EQ(made.waves.energy_ry, silicon.field.waves.energy_ry);
}

TEST_F(Pseudobands, SameSeedSameBitsForAnyNumberOfThreads) {
  for (const char* name : {"silicon", "gaas"}) {
    const test::SmallSilicon crystal(eight_atoms(name));
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    const auto one = coefficients(replaced(crystal.field, {.vectors = 2}, {}));
    omp_set_num_threads(3);
    const auto three = coefficients(replaced(crystal.field, {.vectors = 2}, {}));
    omp_set_num_threads(threads);
    EXPECT_EQ(one, three) << name;
    EXPECT_NE(one, coefficients(replaced(crystal.field, {.vectors = 2, .seed = 2}, {}))) << name;
    EXPECT_NE(one,
              coefficients(replaced(crystal.field, {.vectors = 2}, PseudobandUse::kSelfEnergy)))
        << name;
  }
}

// Means over 120 seeds against the sums over all states: ε(0) is linear in χ, and Σ at fixed W is
// linear in G, so that both must agree within three standard errors. F = 0.1 keeps the error of the
// nodes below the noise.
void expect_unbiased(const std::string& name) {
  test::SmallSilicon crystal(eight_atoms(name));
  SigmaOptions options = crystal.options(
      whole_band_counts(crystal.field.waves, crystal.field.n_occupied + 1, 40).front());
  options.band_min = 14;
  const auto exact = edges(crystal.field, crystal.sigma(options), options);
  std::vector<double> head, trace, top, bottom;
  for (int seed = 0; seed < 120; ++seed) {
    const PseudobandOptions wanted{.vectors = 1, .ratio = 0.1, .seed = seed};
    MeanField field = crystal.field;
    const PseudobandPlan plan = plan_pseudobands(crystal.field, wanted, true);
    field.waves = pseudobands(crystal.field.waves, plan, PseudobandUse::kScreening);
    const auto epsilon = crystal.screening(field);
    double sum = 0.0;
    for (const Cplx value : epsilon[0].epsilon_diagonal) sum += value.real();
    head.push_back(epsilon[0].epsilon_diagonal[0].real());
    trace.push_back(sum);
    field.waves = pseudobands(crystal.field.waves, plan, PseudobandUse::kSelfEnergy);
    options.bands = field.waves.n_bands;
    const auto found = edges(field, crystal.sigma(field, crystal.epsilon, options), options);
    top.push_back(found.first);
    bottom.push_back(found.second);
  }
  double exact_trace = 0.0;
  for (const Cplx value : crystal.epsilon[0].epsilon_diagonal) exact_trace += value.real();
  const double exact_head = crystal.epsilon[0].epsilon_diagonal[0].real();
  const auto expect = [](const std::vector<double>& values, double exact_value,
                         double largest_error, const char* what) {
    const Statistics found(values);
    std::printf("%s: %.6f, mean of seeds %.6f ± %.6f, spread %.6f\n", what, exact_value, found.mean,
                found.error, found.error * std::sqrt(static_cast<double>(values.size())));
    EXPECT_NEAR(found.mean, exact_value, 3.0 * found.error) << what;
    EXPECT_LT(found.error, largest_error) << what;
    EXPECT_GT(found.error, 0.0) << what;
  };
  expect(head, exact_head, 0.02 * exact_head, "ε_00");
  expect(trace, exact_trace, 0.01 * exact_trace, "trace of ε");
  expect(top, exact.first, 0.02, "Σ of the valence top, eV");
  expect(bottom, exact.second, 0.02, "Σ of the conduction bottom, eV");
}
TEST_F(Pseudobands, UnbiasedInChiAndSigmaSilicon) { expect_unbiased("silicon"); }
TEST_F(Pseudobands, UnbiasedInChiAndSigmaGalliumArsenide) { expect_unbiased("gaas"); }

constexpr const char* kDeck =
    "[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\ncutoff_ry = 5.0\nbands = 170\n"
    "[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_min = 14\nband_max = 18\n";

Calculation run(const std::string& deck, int devices = 1) {
  SilentProgress silent;
  DeviceTeam team(std::vector<Device>(static_cast<std::size_t>(devices), find_device("cpu")));
  return run_calculation(parse_deck(deck, {}, "test", "."),
                         {.team = team, .memory_budget_bytes = std::int64_t{1} << 30}, silent);
}
std::string refusal_of(const std::string& deck) {
  try {
    run(deck);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(PseudobandJobs, EqualBitsOnOneAndThreeDevicesAndANamedError) {
  const std::string deck = std::string(kDeck) + "[pseudobands]\nvectors = 2\nseed = 7\n";
  const Calculation one = run(deck), three = run(deck, 3), all = run(kDeck);
  ASSERT_EQ(one.quasiparticles.size(), three.quasiparticles.size());
  for (std::size_t i = 0; i < one.quasiparticles.size(); ++i) {
    EXPECT_EQ(one.quasiparticles[i].sigma_ev, three.quasiparticles[i].sigma_ev);
    EXPECT_NE(one.quasiparticles[i].sigma_ev, all.quasiparticles[i].sigma_ev);
    EXPECT_NEAR(one.quasiparticles[i].sigma_ev, all.quasiparticles[i].sigma_ev, 1.0);
  }
  EXPECT_LT(one.plan.sigma.bands, all.plan.sigma.bands);
  EXPECT_TRUE(one.violated_laws.empty());
  const auto summary = summary_of(one, find_device("cpu"), 1);
  EXPECT_EQ(summary.at("pseudobands").at("given_bands").get<int>(), all.plan.sigma.bands);
  EXPECT_EQ(summary.at("pseudobands").at("statistical_error").get<std::string>(), "not examined");
  EXPECT_LT(summary.at("pseudobands").at("identity_error").get<double>(), 1e-12);
  EXPECT_FALSE(summary_of(all, find_device("cpu"), 1).contains("pseudobands"));
}

// Every state is kept if there are as many vectors as states. The job is then that of all bands.
TEST(PseudobandJobs, ManyVectorsGiveTheJobOfAllBands) {
  const Calculation all = run(kDeck),
                    kept = run(std::string(kDeck) + "[pseudobands]\nvectors = 1000\n");
  ASSERT_FALSE(all.quasiparticles.empty());
  for (std::size_t i = 0; i < all.quasiparticles.size(); ++i)
    EXPECT_EQ(kept.quasiparticles[i].sigma_ev, all.quasiparticles[i].sigma_ev);
}

TEST(PseudobandJobs, SettingsThatNeedSingleStatesAreRefused) {
  const std::string wanted = "[pseudobands]\nvectors = 1\n";
  const std::string field = "[meanfield]\nsource = \"epm\"\n",
                    sums = "[epsilon]\ncutoff_ry = 3.0\n";
  for (const auto& [text, key] : std::vector<std::pair<std::string, std::string>>{
           {field + sums + "bands = 20\n" + wanted, "epsilon.bands"},
           {field + sums + wanted + "[sigma]\nbands = 20\n", "sigma.bands"},
           {field + sums + wanted + "[sigma]\nmethod = \"contour\"\n", "sigma.method"},
           {field + sums + "frequencies = \"real\"\n" + wanted, "epsilon.frequencies"},
           {field + sums + wanted + "[sigma]\nfull_matrix = true\n", "sigma.full_matrix"},
           {"convergence_study = true\n" + field + sums + wanted, "--converge"},
           {field + sums + "[pseudobands]\nseed = 3\n", "pseudobands.seed"},
           {field + sums + "[pseudobands]\nvectors = 6\nblocks = 4\n", "pseudobands.blocks"},
           {"stop_after = \"epsilon\"\n" + field + sums +
                "[pseudobands]\nvectors = 4\nblocks = 4\n",
            "pseudobands.blocks"},
           {"[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\ncutoff_ry = 5.0\nbands = 170\n" +
                sums + "[sigma]\nband_max = 60\n" + wanted,
            "pseudobands.protected_ry"}})
    EXPECT_NE(refusal_of(text).find(key), std::string::npos) << key << ": " << refusal_of(text);
}

// For a mean the jackknife is the mean with Student's interval, and for its square it removes the
// bias s²/B exactly.
TEST(Jackknife, MeansAndTheirSquares) {
  const std::vector<double> x{1.0, 2.0, 4.0, 9.0};
  std::vector<double> means, squares;
  for (const double left_out : x) {
    means.push_back((16.0 - left_out) / 3.0);
    squares.push_back(means.back() * means.back());
  }
  const double variance = (9.0 + 4.0 + 0.0 + 25.0) / 3.0;
  const JackknifeEstimate mean = jackknife(4.0, means), square = jackknife(16.0, squares);
  EXPECT_NEAR(mean.value, 4.0, 1e-13);
  EXPECT_NEAR(mean.half_width, 3.182446 * std::sqrt(variance / 4.0), 1e-12);
  EXPECT_NEAR(square.value, 16.0 - variance / 4.0, 1e-12);
}

TEST(PseudobandJobs, BlocksGiveIntervalsInTableSummaryAndBits) {
  const std::string deck = std::string(kDeck) + "[pseudobands]\nvectors = 4\nblocks = 4\n";
  const Calculation one = run(deck), three = run(deck, 3);
  ASSERT_TRUE(one.pseudoband_errors && three.pseudoband_errors);
  const PseudobandErrors& errors = *one.pseudoband_errors;
  ASSERT_EQ(errors.half_width_ev.size(), one.quasiparticles.size());
  for (std::size_t i = 0; i < errors.half_width_ev.size(); ++i) {
    EXPECT_GT(errors.half_width_ev[i], 0.0);
    EXPECT_EQ(errors.half_width_ev[i], three.pseudoband_errors->half_width_ev[i]);
    EXPECT_EQ(errors.estimate_ev[i], three.pseudoband_errors->estimate_ev[i]);
  }
  const auto summary = summary_of(one, find_device("cpu"), 1);
  const auto& rows = summary.at("pseudobands");
  EXPECT_EQ(rows.at("statistical_error").at("half_width_ev").size(), one.quasiparticles.size());
  EXPECT_NE(table_of(summary).find("95 % intervals of the random vectors, by 4 blocks"),
            std::string::npos);
  EXPECT_NE(table_of(summary).find("not examined:"), std::string::npos);
}

}  // namespace
}  // namespace quasi::gw
