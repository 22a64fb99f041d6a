// Tests the heat that branches carry inside degenerate subspaces (docs/theory/thermal.md 8).

#include "workers/thermal/solver/transport/subspace_conductivity.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/reference_data.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/support/eigenvector_choice.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/thermal/solver/transport/coherence.hpp"

namespace quasi::thermal {
namespace {

std::filesystem::path silicon() { return quasi::test::source_dir() / "examples/thermal/silicon"; }

/// κ_xx of populations in relaxation-time approximation, of the part inside subspaces, and of
/// coherences.
struct Parts {
  double population, subspace, coherence;
  double whole() const { return population + coherence; }
};

Parts parts_of(const test::SolvedDeck& s, const std::vector<double>& rate_per_ps) {
  const Transport t = s.transport();
  const double temperature_k = t.options.temperatures_k[0];
  const Mat3 inside = total(subspace_conductivity(t, temperature_k, rate_per_ps));
  const Mat3 mean =
      total(mode_conductivity(t, temperature_k, relaxation_time_field(t, rate_per_ps)));
  const Mat3 between =
      coherence_conductivity(t, s.deck.second_order, {temperature_k}, {rate_per_ps})[0]
          .kappa_w_per_mk;
  return {mean[0][0] + inside[0][0], inside[0][0], between[0][0]};
}

Parts parts_of(const test::SolvedDeck& s) {
  return parts_of(s, s.run.by_temperature[0].rate_per_ps);
}

// The total does not know the tolerance of degeneracy, because pairs inside a subspace and pairs
// of different subspaces count alike. At rates that depend on ω alone it is constant to 1e-9 up to
// the tolerance 1e-3. A tolerance of 0.1 rad/ps joins branches that are apart, which exchanges
// their velocities for a mean but keeps the trace; the weights then differ by 1e-4.
TEST(SubspaceConductivity, TotalDoesNotKnowTheTolerance) {
  std::vector<double> fixed, own;
  double least_population = 1e300, most_population = 0.0;
  for (const char* tolerance : {"1e-6", "1e-4", "1e-2", "1e-1"}) {
    const auto s = test::solve_deck(
        silicon(), {"ngrid=6,6,6", "convergence=F", std::string("degeneracy=") + tolerance});
    std::vector<double> rate(static_cast<std::size_t>(s->n_rows()));
    for (std::int64_t row = 0; row < s->n_rows(); ++row) {
      const double omega = s->run.modes.omega_rad_ps[s->transport().mode_of_row(row)];
      rate[static_cast<std::size_t>(row)] = 0.02 + 2e-5 * omega * omega;
    }
    fixed.push_back(parts_of(*s, rate).whole());
    const Parts parts = parts_of(*s);
    own.push_back(parts.whole());
    least_population = std::min(least_population, parts.population);
    most_population = std::max(most_population, parts.population);
    std::printf(
        "    tolerance %s: P %.6f, of it inside subspaces %.6f, C %.6f, P + C %.6f; at "
        "fixed rates %.9f\n",
        tolerance, parts.population, parts.subspace, parts.coherence, parts.whole(), fixed.back());
  }
  for (std::size_t i = 1; i < fixed.size(); ++i) {
    EXPECT_NEAR(fixed[i] / fixed[0], 1.0, 2e-5);
    EXPECT_NEAR(own[i] / own[0], 1.0, 1e-3);
  }
}

/// Reads silicon whose constants break the cubic symmetry by 2e-4, with a tolerance of degeneracy.
Deck split_silicon(std::vector<std::string> settings, const std::string& tolerance) {
  settings.insert(settings.end(),
                  {"ngrid=4,4,4", "allow_inconsistent_position=T", "degeneracy=" + tolerance});
  Deck deck = read_deck(test::model("silicon-sw"), test::settings_of(settings));
  for (std::size_t e = 0; e < deck.second_order.value.size(); ++e)
    deck.second_order.value[e] *= 1.0 + 2e-4 * std::cos(3.0 * static_cast<double>(e % 9));
  return deck;
}

// Constants that break the cubic symmetry by 2e-4 split the degenerate levels. Their heat moves
// from populations to coherences and back with the tolerance, and the total stays.
TEST(SubspaceConductivity, SplitLevelsKeepTheTotal) {
  std::vector<Parts> found;
  std::vector<double> own;
  for (const char* tolerance : {"1e-6", "1e-3", "1e-1"}) {
    const auto s = test::solve_model(split_silicon({"convergence=F"}, tolerance));
    std::vector<double> rate(static_cast<std::size_t>(s->n_rows()));
    for (std::int64_t row = 0; row < s->n_rows(); ++row) {
      const double omega = s->run.modes.omega_rad_ps[s->transport().mode_of_row(row)];
      rate[static_cast<std::size_t>(row)] = 0.02 + 2e-5 * omega * omega;
    }
    found.push_back(parts_of(*s, rate));
    own.push_back(parts_of(*s).whole());
    std::printf("    tolerance %s: P %.6f, inside %.6f, C %.6f, P + C %.6f; own rates %.6f\n",
                tolerance, found.back().population, found.back().subspace, found.back().coherence,
                found.back().whole(), own.back());
  }
  for (double whole : own) EXPECT_NEAR(whole / own[0], 1.0, 1e-3);
  for (const Parts& parts : found) EXPECT_NEAR(parts.whole() / found[0].whole(), 1.0, 1e-3);
  EXPECT_GT(found[0].coherence, 1.5 * found[2].coherence) << "the tolerance must matter";
}

// The iterated κ keeps its total too. Modes of one subspace share one vector F of the linearised
// equation, so a tolerance that joins branches changes the equation itself.
TEST(SubspaceConductivity, SplitLevelsKeepTheIteratedTotal) {
  std::vector<double> whole, between;
  for (const char* tolerance : {"1e-6", "1e-5", "1e-4", "1e-3", "1e-2", "1e-1"}) {
    const auto s = test::solve_model(split_silicon({"eps=1e-10"}, tolerance));
    const TemperatureResult& r = s->run.by_temperature[0];
    ASSERT_TRUE(r.converged);
    between.push_back(coherence_conductivity(s->transport(), s->deck.second_order,
                                             {r.temperature_k}, {r.rate_per_ps})[0]
                          .kappa_w_per_mk[0][0]);
    whole.push_back(r.kappa_w_per_mk[0][0] + between.back());
    std::printf("    tolerance %s: BTE %.6f, of it inside subspaces %.6f, C %.6f, total %.6f\n",
                tolerance, r.kappa_w_per_mk[0][0], r.kappa_subspace_w_per_mk[0][0], between.back(),
                whole.back());
  }
  for (const double found : whole) EXPECT_NEAR(found / whole[0], 1.0, 1e-4);
  EXPECT_GT(between.front(), 1.5 * between.back()) << "the tolerance must matter";
}

// The shipped silicon at 4³: an independent program found 27.6053 W/m/K with mean velocities and
// 27.9481 with the rule, at the relaxation-time rates of this deck.
TEST(SubspaceConductivity, SiliconAgreesWithAnIndependentProgram) {
  const auto s = test::solve_deck(silicon(), {"ngrid=4,4,4", "convergence=F"});
  const Parts parts = parts_of(*s);
  EXPECT_NEAR(parts.population, 27.9481, 1e-4);
  EXPECT_NEAR(parts.population - parts.subspace, 27.6053, 1e-4);
  EXPECT_NEAR(s->run.by_temperature[0].kappa_rta_w_per_mk[0][0], parts.population, 1e-10);
}

// Random unitary mixtures of degenerate eigenvectors change no sum over a subspace.
TEST(SubspaceConductivity, IsIndependentOfDegenerateEigenvectors) {
  const auto s = test::solve_deck(silicon(), {"ngrid=4,4,4", "convergence=F"});
  const Parts before = parts_of(*s);
  test::rotate_degenerate_sets(s->deck, 5, s->run.modes);
  set_subspace_velocities(s->deck, s->deck.control.harmonic_options(), s->run.modes);
  const Parts after = parts_of(*s);
  EXPECT_GT(before.subspace, 0.1);
  EXPECT_NEAR(after.subspace / before.subspace, 1.0, 1e-9);
  EXPECT_NEAR(after.population / before.population, 1.0, 1e-9);
}

// The iterated κ contains κ_Δ too. compat = "fourphonon" keeps the mean velocities of FourPhonon.
TEST(SubspaceConductivity, BelongsToTheIteratedPopulationsButNotToCompat) {
  const auto s = test::solve_deck(silicon(), {"ngrid=4,4,4"});
  const TemperatureResult& r = s->run.by_temperature[0];
  const Mat3 mean = total(mode_conductivity(s->transport(), r.temperature_k, r.solution.f));
  EXPECT_GT(r.kappa_subspace_w_per_mk[0][0], 0.1);
  EXPECT_NEAR(r.kappa_w_per_mk[0][0], mean[0][0] + r.kappa_subspace_w_per_mk[0][0], 1e-10);
  const auto compat =
      test::solve_deck(silicon(), {"ngrid=4,4,4", "convergence=F", "compat=fourphonon"});
  EXPECT_TRUE(compat->run.modes.subspace_pairs.empty());
  EXPECT_EQ(compat->run.by_temperature[0].kappa_subspace_w_per_mk[0][0], 0.0);
}

// In small grains and thin wires the walls stop every branch, those with a vanishing mean velocity
// too.
TEST(SubspaceConductivity, WallsStopBranchesWithoutAMeanVelocity) {
  const auto kappa = [](double length_nm) {
    const auto s = test::solve_deck(silicon(), {"ngrid=4,4,4", "convergence=F",
                                                "boundary_length_nm=" + std::to_string(length_nm)});
    return std::pair{s->run.by_temperature[0].kappa_subspace_w_per_mk[0][0],
                     s->run.by_temperature[0]};
  };
  const auto [coarse, ignored] = kappa(1e-3);
  const auto [fine, result] = kappa(1e-4);
  EXPECT_NEAR(fine / coarse, 0.1, 1e-3);
  EXPECT_NEAR(result.kappa_rta_w_per_mk[0][0] / (1e-4 * result.small_grain_w_per_mk_nm[0][0]), 1.0,
              1e-3);
}

}  // namespace
}  // namespace quasi::thermal
