// Tests factors and rules that comparing two sums cannot check: isotopes, heat capacity, the weight
// outside a window, the gauge of degenerate sets, ties.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/thermal/physics/scattering_4ph.hpp"
#include "workers/thermal/solver/harmonic/isotope.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

using test::model;

// On a site of cubic symmetry Σ_λ' δ(ω−ω') e'_α* e'_β of an atom is isotropic, so that Tamura's
// double sum is
//   w = (π/2) ω² Σ_κ g |e(κ)|² D_κ(ω)/3
// with the atom's density of states D_κ for equal widths. The limit is 1e-9, because the star of a
// mode is symmetric to rounding.
TEST(ClosedForms, IsotopeRateIsThatOfTheAtomsDensityOfStates) {
  const auto s = test::solve_deck(model("silicon-sw"),
                                  {"ngrid=6,6,6", "convergence=F", "isotopes=T", "autoisotopes=F",
                                   "masses=28.0855", "gfactors=2.0e-3"});
  const Modes& modes = s->run.modes;
  const int nb = modes.n_branches;
  const std::vector<double> width =
      elastic_widths_rad_ps(modes, s->deck.control.harmonic_options());
  const double window = 2.5;  // docs/theory/thermal.md 9
  int checked = 0;
  for (std::int64_t row = 0; row < s->n_rows(); ++row) {
    const std::int64_t mode =
        static_cast<std::int64_t>(
            s->deck.symmetry.irreducible[static_cast<std::size_t>(row / nb)]) *
            nb +
        row % nb;
    const double omega = modes.omega_rad_ps[mode];
    if (!(omega > 0.0)) continue;
    double expected = 0.0;
    for (int atom = 0; atom < 2; ++atom) {
      const auto weight = [&](std::int64_t m) {
        double sum = 0.0;
        for (int d = 0; d < 3; ++d) sum += std::norm(modes.eigenvector[m * nb + 3 * atom + d]);
        return sum;
      };
      double density = 0.0;
      for (std::int64_t other = 0; other < modes.n_modes(); ++other) {
        const double x = (omega - modes.omega_rad_ps[other]) / width[other];
        if (modes.omega_rad_ps[other] > 0.0 && std::fabs(x) < window)
          density += std::exp(-x * x) / (std::sqrt(units::kPi) * width[other]) * weight(other) /
                     static_cast<double>(modes.n_q);
      }
      expected += 0.5 * units::kPi * omega * omega * 2.0e-3 * weight(mode) * density / 3.0;
    }
    EXPECT_NEAR(s->run.isotope_per_ps[static_cast<std::size_t>(row)] / expected, 1.0, 1e-9)
        << "row " << row;
    ++checked;
  }
  EXPECT_GT(checked, 80);
}

// k_B for each of the 3 states of an atom at high temperature (Dulong and Petit). The next term is
// (ħω/k_BT)²/12 < 3e-4 here.
TEST(ClosedForms, HeatCapacityOfAHotCrystal) {
  const auto s = test::solve_deck(model("silicon-sw"), {"ngrid=4,4,4", "convergence=F", "T=20000"});
  const double states_per_m3 = 6.0 / (s->deck.crystal.volume_nm3() * 1e-27);
  EXPECT_NEAR(s->run.by_temperature[0].heat_capacity_j_m3_k / (states_per_m3 * 1.380649e-23), 1.0,
              3e-4);
  // Einstein's function of every mode at 300 K, from the energy k_BT x/(e^{2x} − 1) by a central
  // difference in T.
  const auto energy = [&](double t) {
    double sum = 0.0;
    for (const double w : s->run.modes.omega_rad_ps) {
      const double kt = 0.1309202949 * t;  // k_BT/ħ in rad/ps
      sum += w > 0.0 ? w / std::expm1(w / kt) : kt;
    }
    return sum * 1.054571817e-34 * 1e12 / static_cast<double>(s->run.modes.n_q) /
           (s->deck.crystal.volume_nm3() * 1e-27);
  };
  const auto at_300 =
      test::solve_deck(model("silicon-sw"), {"ngrid=4,4,4", "convergence=F", "T=300"});
  EXPECT_NEAR(at_300->run.by_temperature[0].heat_capacity_j_m3_k /
                  ((energy(300.01) - energy(299.99)) / 0.02),
              1.0, 1e-6);
}

// window_norm divides every rate by erf(cut).
TEST(ClosedForms, WindowNormIsTheErrorFunction) {
  for (const double cut : {1.0, 2.0}) {
    const std::string window = "cut3=" + std::to_string(cut);
    const auto with = test::solve_deck(model("silicon-sw"),
                                       {"ngrid=4,4,4", "convergence=F", window, "window_norm=T"});
    const auto without = test::solve_deck(
        model("silicon-sw"), {"ngrid=4,4,4", "convergence=F", window, "window_norm=F"});
    double a = 0.0, b = 0.0;
    for (const double x : with->run.three_phonon.absorption_per_ps) a += x;
    for (const double x : without->run.three_phonon.absorption_per_ps) b += x;
    EXPECT_NEAR(a / b * std::erf(cut), 1.0, 1e-12);
  }
}

// In a degenerate set the eigenvectors diagonalise the velocity along the fixed direction, for any
// output of the eigensolver, and all branches have the set's mean velocity. This also holds for
// sets that no symmetry makes degenerate (2 rad/ps).
TEST(ClosedForms, DegenerateSetsHaveOneGaugeAndOneVelocity) {
  SilentProgress silent;
  const Vec3 direction{0.5377, 0.6180, 0.5736};
  for (const char* setting : {"symmetry=T", "symmetry=F", "degeneracy=2"}) {
    const Deck deck = read_deck(model("silicon-sw"), test::settings_of({"ngrid=6,6,6", setting}));
    const Modes modes = start_run(deck, deck.control.harmonic_options(), silent).modes;
    const DynamicalMatrixBuilder builder(deck.crystal, deck.second_order,
                                         deck.control.harmonic_options());
    const int nb = modes.n_branches;
    int sets = 0;
    double mixed =
        0.0;  // the largest coupling that a rotation by 45° would show, which the rule must remove
    for (std::int64_t q = 1; q < modes.n_q; ++q) {
      int c[3];
      deck.symmetry.mesh.coordinates(q, c);
      const DynamicalMatrix matrix = builder.at({c[0] / 6.0, c[1] / 6.0, c[2] / 6.0}, true);
      const auto element = [&](int a, int b) {
        std::complex<double> sum = 0.0;
        for (int i = 0; i < nb; ++i)
          for (int j = 0; j < nb; ++j)
            for (int g = 0; g < 3; ++g)
              sum += std::conj(modes.eigenvector[(q * nb + a) * nb + i]) * direction[g] *
                     matrix.gradient[g][i * nb + j] * modes.eigenvector[(q * nb + b) * nb + j];
        return sum;
      };
      for (int s = 1; s < nb; ++s) {
        if (modes.subspace[q * nb + s] != modes.subspace[q * nb + s - 1]) continue;
        ++sets;
        mixed = std::max(mixed, 0.5 * std::abs(element(s, s) - element(s - 1, s - 1)));
        EXPECT_LT(std::abs(element(s, s - 1)), 1e-7)
            << "q " << q << " branch " << s;  // typical values are hundreds of (rad/ps)² nm
        for (int d = 0; d < 3; ++d)
          EXPECT_NEAR(modes.velocity_km_s[(q * nb + s) * 3 + d],
                      modes.velocity_km_s[(q * nb + s - 1) * 3 + d], 1e-12);
      }
    }
    EXPECT_GT(sets, 50);
    EXPECT_GT(mixed, 10.0);
  }
}

// A tuple resonant by symmetry (σ = 0, Δω a rounding error) is a process by the tie rule and does
// not depend on the last bit.
TEST(ClosedForms, TiesOfFourPhonons) {
  Rules4ph rules;
  EXPECT_EQ(test_window_4ph(rules, 1.0, 9e-10, 0.0).multiplicity, 1.0);
  EXPECT_EQ(test_window_4ph(rules, 1.0, -9e-10, 0.0).multiplicity, 1.0);
  EXPECT_EQ(test_window_4ph(rules, 1.0, 1.1e-9, 0.0).multiplicity, 0.0);
  EXPECT_EQ(test_window_4ph(rules, 1.0, 1.1e-9, 4e-18).multiplicity, 1.0)
      << "σ = 2e-9 is the window";
  rules.tie_tolerance_rad_ps = 0.0;
  EXPECT_EQ(test_window_4ph(rules, 1.0, 9e-10, 0.0).multiplicity, 0.0);
}

}  // namespace
}  // namespace quasi::thermal
