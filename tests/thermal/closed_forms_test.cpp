// Factors that no sum of ours can check against another: isotopes, grains, the weight that a window leaves out.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/reference_data.hpp"
#include "tests/thermal/model_deck.hpp"
#include "tests/thermal/solved_deck.hpp"
#include "workers/thermal/solver/isotope.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

using test::model;

// On a site of cubic symmetry Σ_λ' δ(ω−ω') e'_α* e'_β of an atom is isotropic, so that Tamura's double sum is
//   w = (π/2) ω² Σ_κ g |e(κ)|² D_κ(ω)/3
// with D_κ the atom's density of states with the same widths. 1e-9: the star of a mode is symmetric to rounding.
TEST(ClosedForms, IsotopeRateIsThatOfTheAtomsDensityOfStates) {
  const auto s = test::solve_deck(model("silicon-sw"), {"ngrid=6,6,6", "convergence=F", "isotopes=T", "autoisotopes=F", "masses=28.0855",
                                                        "gfactors=2.0e-3"});
  const Modes& modes = s->run.modes;
  const int nb = modes.n_branches;
  const std::vector<double> width = elastic_widths_rad_ps(s->deck.crystal, s->deck.symmetry, modes, s->deck.control);
  const double window = 2.5;  // thermal.md 9
  int checked = 0;
  for (std::int64_t row = 0; row < s->n_rows(); ++row) {
    const std::int64_t mode = static_cast<std::int64_t>(s->deck.symmetry.irreducible[static_cast<std::size_t>(row / nb)]) * nb + row % nb;
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
          density += std::exp(-x * x) / (std::sqrt(units::kPi) * width[other]) * weight(other) / static_cast<double>(modes.n_q);
      }
      expected += 0.5 * units::kPi * omega * omega * 2.0e-3 * weight(mode) * density / 3.0;
    }
    EXPECT_NEAR(s->run.isotope_per_ps[static_cast<std::size_t>(row)] / expected, 1.0, 1e-9) << "row " << row;
    ++checked;
  }
  EXPECT_GT(checked, 80);
}

// Where walls stop every phonon κ is L times the small-grain limit: occupations, heat capacities, |v|/L at once.
TEST(ClosedForms, TinyGrainsConductTheirLimit) {
  constexpr double kLength_nm = 1e-6;  // shorter than every other path by 1e-6 or more
  for (const char* name : {"silicon-sw", "wurtzite-sw"}) {
    const auto s = test::solve_deck(model(name), {"ngrid=4,4,4", "convergence=F", "T=300", "boundary_length_nm=1e-6"});
    const TemperatureResult& r = s->run.by_temperature[0];
    for (int i = 0; i < 3; ++i)
      EXPECT_NEAR(r.kappa_rta_w_per_mk[i][i] / kLength_nm / r.small_grain_w_per_mk_nm[i][i], 1.0, 1e-5) << name << " axis " << i;
  }
}

// k_B for each of the 3 states of an atom when hot (Dulong and Petit): the next term is (ħω/k_BT)²/12 < 3e-4 here.
TEST(ClosedForms, HeatCapacityOfAHotCrystal) {
  const auto s = test::solve_deck(model("silicon-sw"), {"ngrid=4,4,4", "convergence=F", "T=20000"});
  const double states_per_m3 = 6.0 / (s->deck.crystal.volume_nm3() * 1e-27);
  EXPECT_NEAR(s->run.by_temperature[0].heat_capacity_j_m3_k / (states_per_m3 * 1.380649e-23), 1.0, 3e-4);
  // Einstein's function of every mode at 300 K, from the energy k_BT x/(e^{2x} − 1): central difference in T.
  const auto energy = [&](double t) {
    double sum = 0.0;
    for (const double w : s->run.modes.omega_rad_ps) {
      const double kt = 0.1309202949 * t;  // k_BT/ħ in rad/ps
      sum += w > 0.0 ? w / std::expm1(w / kt) : kt;
    }
    return sum * 1.054571817e-34 * 1e12 / static_cast<double>(s->run.modes.n_q) / (s->deck.crystal.volume_nm3() * 1e-27);
  };
  const auto at_300 = test::solve_deck(model("silicon-sw"), {"ngrid=4,4,4", "convergence=F", "T=300"});
  EXPECT_NEAR(at_300->run.by_temperature[0].heat_capacity_j_m3_k / ((energy(300.01) - energy(299.99)) / 0.02), 1.0, 1e-6);
}

// window_norm divides every rate by erf(cut).
TEST(ClosedForms, WindowNormIsTheErrorFunction) {
  for (const double cut : {1.0, 2.0}) {
    const std::string window = "cut3=" + std::to_string(cut);
    const auto with = test::solve_deck(model("silicon-sw"), {"ngrid=4,4,4", "convergence=F", window, "window_norm=T"});
    const auto without = test::solve_deck(model("silicon-sw"), {"ngrid=4,4,4", "convergence=F", window, "window_norm=F"});
    double a = 0.0, b = 0.0;
    for (const double x : with->run.three_phonon.absorption_per_ps) a += x;
    for (const double x : without->run.three_phonon.absorption_per_ps) b += x;
    EXPECT_NEAR(a / b * std::erf(cut), 1.0, 1e-12);
  }
}

}  // namespace
}  // namespace quasi::thermal
