// Tests the energy conservation of phono3py: one width for all processes, and linear tetrahedra.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

using Settings = std::vector<std::string>;

Settings with(const Settings& more) {
  Settings settings{"T=300",          "isotopes=F", "autoisotopes=F",
                    "masses=28.0855", "gfactors=0", "allow_few_processes=T"};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

std::unique_ptr<test::SolvedDeck> solved(const Settings& more) {
  return test::solve_deck(test::model("silicon-sw"), with(more));
}

std::string refusal_of(const Settings& more) {
  try {
    read_deck(test::model("silicon-sw"), test::settings_of(with(more)));
  } catch (const InvalidInput& refusal) {
    return refusal.what();
  }
  return "no refusal";
}

// The phase space of every mode is the sum of the Gaussians of phono3py, exp(−x²/2s²)/√(2π)s
// with s = 2π·sigma_thz, over all pairs of partners inside the window.
TEST(FixedWidth, IsTheStandardDeviationOfPhono3py) {
  const auto s = solved({"ngrid=4,4,4", "broadening=fixed", "sigma_thz=0.15", "cut3=1.5",
                         "window_norm=F", "convergence=F"});
  const Modes& modes = s->run.modes;
  const QMesh& mesh = s->problem.mesh;
  const double deviation = 2.0 * units::kPi * 0.15;
  const int nb = modes.n_branches;
  for (std::int64_t row = 0; row < s->n_rows(); ++row) {
    const std::int64_t mode0 = s->problem.mode_of_row(row);
    double absorption = 0.0, emission = 0.0;
    for (std::int64_t m1 = 0; m1 < modes.n_modes(); ++m1)
      for (const int sign : {1, -1}) {
        const std::int64_t q2 = mesh.add(mode0 / nb, m1 / nb, sign);
        for (std::int64_t m2 = q2 * nb; m2 < (q2 + 1) * nb; ++m2) {
          if (!modes.active(mode0, 1e100) || !modes.active(m1, 1e100) || !modes.active(m2, 1e100))
            continue;
          const double x =
              modes.omega_rad_ps[mode0] + sign * modes.omega_rad_ps[m1] - modes.omega_rad_ps[m2];
          if (std::fabs(x) > 1.5 * std::sqrt(2.0) * deviation) continue;
          (sign > 0 ? absorption : emission) += std::exp(-x * x / (2.0 * deviation * deviation)) /
                                                (std::sqrt(2.0 * units::kPi) * deviation);
        }
      }
    EXPECT_NEAR(s->run.three_phonon.phase_space_absorption_ps[row], absorption,
                1e-12 * (1.0 + absorption));
    EXPECT_NEAR(s->run.three_phonon.phase_space_emission_ps[row], emission,
                1e-12 * (1.0 + emission));
  }
}

// One width for all processes leaves the operator symmetric: conjugate gradients and GMRES agree.
TEST(FixedWidth, GivesASymmetricOperator) {
  const Settings settings{"ngrid=4,4,4", "broadening=fixed", "sigma_thz=0.15", "eps=1e-10"};
  double kappa[2];
  for (const bool gradients : {true, false}) {
    Settings own = settings;
    own.push_back(gradients ? "solver=cg" : "solver=gmres");
    kappa[gradients ? 0 : 1] = solved(own)->run.by_temperature[0].kappa_w_per_mk[0][0];
  }
  EXPECT_GT(kappa[0], 1.0);
  EXPECT_NEAR(kappa[0] / kappa[1], 1.0, 1e-8);
}

// Tetrahedra need no width: κ is near that of Gaussians on the same mesh. The keys of widths do
// not change it, and each of them is said.
TEST(Tetrahedra, GiveKappaWithoutAWidth) {
  const auto own_deck = solved({"ngrid=6,6,6", "broadening=tetrahedra"});
  const auto wide_deck = solved({"ngrid=6,6,6", "broadening=symmetric"});
  const auto other_deck =
      solved({"ngrid=6,6,6", "broadening=tetrahedra", "scalebroad=0.3", "cut3=1"});
  const TemperatureResult& own = own_deck->run.by_temperature[0];
  const TemperatureResult& wide = wide_deck->run.by_temperature[0];
  const TemperatureResult& other = other_deck->run.by_temperature[0];
  EXPECT_TRUE(own.converged);
  EXPECT_NEAR(own.kappa_rta_w_per_mk[0][0] / wide.kappa_rta_w_per_mk[0][0], 1.0, 0.25);
  EXPECT_EQ(own.kappa_rta_w_per_mk, other.kappa_rta_w_per_mk);
  EXPECT_EQ(own.kappa_w_per_mk, other.kappa_w_per_mk);
  const auto says = [](const Deck& deck, const std::string& key) {
    return std::count_if(deck.warnings.begin(), deck.warnings.end(), [&](const std::string& w) {
      return w.find("'" + key + "' has no effect with broadening = tetrahedra") !=
             std::string::npos;
    });
  };
  EXPECT_EQ(says(other_deck->deck, "cut3"), 1);
  EXPECT_EQ(says(other_deck->deck, "scalebroad"), 1);
  EXPECT_EQ(says(own_deck->deck, "cut3"), 0);
}

// phono3py's Gaussian has no window, so that of a fixed width is 4σ unless the deck gives another.
TEST(FixedWidth, HasAWideWindow) {
  const auto control = [](const Settings& more) {
    return read_deck(test::model("silicon-sw"), test::settings_of(with(more))).control;
  };
  EXPECT_EQ(control({"broadening=fixed", "sigma_thz=0.1"}).cut_3ph, 4.0);
  EXPECT_EQ(control({"broadening=fixed", "sigma_thz=0.1", "cut3=3"}).cut_3ph, 3.0);
  EXPECT_EQ(control({}).cut_3ph, 2.0);
}

TEST(Widths, WrongKeysNameTheRemedy) {
  const auto expect = [](const Settings& settings, const char* part) {
    const std::string message = refusal_of(settings);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect({"broadening=fixed"}, "needs 'sigma_thz'");
  expect({"sigma_thz=0.1"}, "belongs to broadening = fixed");
  expect({"broadening=fixed", "sigma_thz=0.1", "convergence_study=T"}, "convergence study");
  expect({"broadening=fixed", "sigma_thz=0.1", "four_phonon=T"}, "three phonons alone");
  expect({"broadening=tetrahedra", "four_phonon=T"}, "three phonons alone");
  expect({"broadening=tetrahedra", "convergence_study=T"}, "convergence study");
  expect({"broadening=tetrahedra", "derivative=T"}, "symmetric operator");
  expect({"broadening=tetrahedra", "solver=cg"}, "symmetric collision operator");
}

}  // namespace
}  // namespace quasi::thermal
