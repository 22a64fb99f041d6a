// No result depends on which eigenvectors LAPACK returns inside degenerate sets.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/reference_data.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/four_phonon/kappa_bar_4ph.hpp"
#include "tests/thermal/support/eigenvector_choice.hpp"
#include "workers/thermal/solver/harmonic/gruneisen.hpp"

namespace quasi::thermal {
namespace {

constexpr double kTolerance = 1e-9;

std::filesystem::path silicon_sw() {
  return quasi::test::source_dir() / "examples/thermal/silicon-sw";
}

/// The choice of another eigensolver, made canonical as solve_harmonic does.
void choose_otherwise(test::SolvedDeck& solved) {
  test::rotate_degenerate_sets(solved.deck, 17, solved.run.modes);
  test::make_canonical(solved.deck, solved.run.modes);
}
/// The choice of another eigensolver as it is.
void only_rotate(test::SolvedDeck& solved) {
  test::rotate_degenerate_sets(solved.deck, 17, solved.run.modes);
}

void expect_equal(const std::vector<double>& a, const std::vector<double>& b, const char* name) {
  ASSERT_EQ(a.size(), b.size()) << name;
  double largest = 0.0;
  for (const double x : a) largest = std::max(largest, std::fabs(x));
  // Elements that symmetry forbids are rounding noise.
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], kTolerance * std::fabs(a[i]) + 1e-14 * largest) << name << ' ' << i;
}
void expect_equal(const Mat3& a, const Mat3& b, const char* name) {
  for (int i = 0; i < 3; ++i)
    EXPECT_NEAR(a[i][i], b[i][i], kTolerance * std::fabs(a[i][i])) << name << ' ' << i;
}

/// Everything per mode that is printed or stored, and κ.
void expect_same_results(const test::SolvedDeck& a, const test::SolvedDeck& b) {
  const ThreePhononRates& x = a.run.three_phonon;
  const ThreePhononRates& y = b.run.three_phonon;
  expect_equal(x.absorption_per_ps, y.absorption_per_ps, "absorption");
  expect_equal(x.emission_per_ps, y.emission_per_ps, "emission");
  expect_equal(x.normal_absorption_per_ps, y.normal_absorption_per_ps, "normal absorption");
  expect_equal(x.normal_emission_per_ps, y.normal_emission_per_ps, "normal emission");
  expect_equal(x.weighted_absorption_ps4, y.weighted_absorption_ps4, "weighted phase space");
  expect_equal(x.phase_space_emission_ps, y.phase_space_emission_ps, "phase space");
  expect_equal(x.absorption_error_per_ps, y.absorption_error_per_ps, "error of absorption");
  expect_equal(x.emission_error_per_ps, y.emission_error_per_ps, "error of emission");
  expect_equal(a.run.isotope_per_ps, b.run.isotope_per_ps, "isotopes");
  expect_equal(a.run.kappa_relative_error, b.run.kappa_relative_error, "error of κ");
  const TemperatureResult& s = a.run.by_temperature.at(0);
  const TemperatureResult& t = b.run.by_temperature.at(0);
  expect_equal(s.rate_per_ps, t.rate_per_ps, "rates");
  expect_equal(s.field_rta, t.field_rta, "mean free displacement");
  expect_equal(s.kappa_rta_w_per_mk, t.kappa_rta_w_per_mk, "κ of relaxation times");
  ASSERT_EQ(s.converged, t.converged);
  expect_equal(s.final_rate_per_ps, t.final_rate_per_ps, "iterated rates");
  if (s.converged) expect_equal(s.kappa_w_per_mk, t.kappa_w_per_mk, "iterated κ");
}

void expect_same_rates_4ph(const Rates4ph& a, const Rates4ph& b) {
  expect_equal(a.normal_per_ps, b.normal_per_ps, "four phonons, normal");
  expect_equal(a.umklapp_per_ps, b.umklapp_per_ps, "four phonons, Umklapp");
  expect_equal(a.weighted_phase_space, b.weighted_phase_space, "weighted phase space");
  expect_equal(a.phase_space, b.phase_space, "phase space");
  expect_equal(a.error_per_ps, b.error_per_ps, "errors");
}

std::vector<std::vector<std::string>> ways_of_drawing(const std::string& key) {
  return {{}, {key + "=200", "sampling=by-weight"}, {key + "=2000", "sampling=uniform"}};
}

TEST(EigenvectorChoice, ChangesNothingOfThreePhonons) {
  for (const auto& deck : {silicon_sw(), test::model("wurtzite-sw")})
    for (std::vector<std::string> settings : ways_of_drawing("num_sample_process_3ph")) {
      settings.push_back(deck == silicon_sw() ? "ngrid=4,4,4" : "ngrid=2,2,2");
      settings.push_back(settings.size() > 1 ? "convergence=F" : "eps=1e-12");
      const auto a = test::solve_deck(deck, settings);
      const auto b = test::solve_deck(deck, settings, Device{}, choose_otherwise);
      expect_same_results(*a, *b);
    }
}

TEST(EigenvectorChoice, ChangesNothingOfFourPhonons) {
  for (std::vector<std::string> settings : ways_of_drawing("num_sample_process_4ph")) {
    settings.insert(settings.end(), {"ngrid=3,3,3", "convergence=F"});
    const auto a = test::solve_deck_4ph(silicon_sw(), settings);
    const auto b = test::solve_deck_4ph(silicon_sw(), settings, {Device{}}, choose_otherwise);
    expect_same_results(*a, *b);
    expect_same_rates_4ph(a->four_phonon->rates, b->four_phonon->rates);
    expect_equal(a->four_phonon->kappa_relative_error, b->four_phonon->kappa_relative_error,
                 "error of κ");
  }
}

// Exact sums, and uniform draws of four phonons, do not even need canonical eigenvectors.
TEST(EigenvectorChoice, ExactSumsAndUniformDrawsAreInvariant) {
  for (std::vector<std::string> settings : ways_of_drawing("num_sample_process_4ph")) {
    const bool by_weight = !settings.empty() && settings.back() == "sampling=by-weight";
    if (by_weight) continue;
    settings.insert(settings.end(), {"ngrid=3,3,3", "convergence=F"});
    const auto a = test::solve_deck_4ph(silicon_sw(), settings);
    const auto b = test::solve_deck_4ph(silicon_sw(), settings, {Device{}}, only_rotate);
    expect_same_results(*a, *b);
    expect_same_rates_4ph(a->four_phonon->rates, b->four_phonon->rates);
  }
}

TEST(EigenvectorChoice, ChangesNoGrueneisenParameter) {
  const auto a = test::solve_deck(silicon_sw(), {"ngrid=4,4,4", "convergence=F"});
  const auto b =
      test::solve_deck(silicon_sw(), {"ngrid=4,4,4", "convergence=F"}, Device{}, choose_otherwise);
  const auto parameters = [](const test::SolvedDeck& s) {
    const Transport transport{s.deck.crystal, s.deck.symmetry, s.run.modes,
                              s.deck.control.transport_options()};
    return gruneisen_parameters(transport, s.deck.third_order);
  };
  expect_equal(parameters(*a), parameters(*b), "Grüneisen parameters");
}

// Canonical eigenvectors are those of the dynamical matrix, up to a phase, from any mixture.
TEST(EigenvectorChoice, CanonicalVectorsAreUnique) {
  for (const auto& [path, mesh] : {std::pair{silicon_sw(), "ngrid=4,4,4"},
                                   std::pair{test::model("wurtzite-sw"), "ngrid=4,4,2"},
                                   std::pair{test::model("rocksalt"), "ngrid=4,4,4"}}) {
    SilentProgress silent;
    const Deck deck = read_deck(path, test::settings_of({mesh, "onlyharmonic=T"}));
    const Modes modes = start_run(deck, deck.control.harmonic_options(), silent).modes;
    Modes other = modes;
    test::rotate_degenerate_sets(deck, 5, other);
    test::make_canonical(deck, other);
    const std::int64_t nb = modes.n_branches;
    int n_degenerate = 0;
    for (std::int64_t mode = 0; mode < modes.n_modes(); ++mode) {
      if (!modes.active(mode, 1e100)) continue;
      std::complex<double> overlap = 0.0;
      for (std::int64_t x = 0; x < nb; ++x)
        overlap += std::conj(modes.eigenvector[mode * nb + x]) * other.eigenvector[mode * nb + x];
      EXPECT_NEAR(std::abs(overlap), 1.0, 1e-10) << path << " mode " << mode;
      n_degenerate += modes.subspace[mode] != mode % nb;
    }
    EXPECT_GT(n_degenerate, 20) << "the law is not tested by this mesh";
  }
}

// A bar stays honest when another eigensolver's vectors stand in place of the canonical ones.
TEST(EigenvectorChoice, LeavesTheBarOnKappaHonest) {
  constexpr int kSeeds = 40;
  const auto exact = test::exact_silicon_4ph(Device{}, only_rotate);
  for (const bool uniform : {true, false}) {
    const test::KappaBar bar =
        uniform ? test::kappa_bar_4ph(*exact, Device{}, Sampling::kUniform, 4000, kSeeds)
                : test::kappa_bar_4ph(*exact, Device{}, Sampling::kByWeight, 300, kSeeds);
    std::printf("    %s: root mean square of error/bar %.2f, two bars cover %d of %d\n",
                uniform ? "uniform" : "by weight", bar.rms_error_over_bar, bar.covered, kSeeds);
    EXPECT_NEAR(bar.rms_error_over_bar, 1.0, 0.3);
    EXPECT_GE(bar.covered, 36);
  }
}

}  // namespace
}  // namespace quasi::thermal
