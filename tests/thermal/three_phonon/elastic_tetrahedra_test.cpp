// Tests linear tetrahedra in isotope scattering and in densities of states (docs/theory/thermal.md
// 9).

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numeric>
#include <string>
#include <vector>

#include "tests/oracle/thermal/oracle_tetrahedra.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "tests/thermal/three_phonon/star_members.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/solver/harmonic/isotope.hpp"
#include "workers/thermal/solver/harmonic/reduced_lattice.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

std::unique_ptr<test::SolvedDeck> with_isotopes(const std::string& name, const std::string& mesh,
                                                const std::string& broadening = "tetrahedra") {
  const std::string g = name == "silicon-sw" ? "gfactors=2e-3" : "gfactors=2e-3,6e-4";
  return test::solve_deck(test::model(name),
                          {"ngrid=" + mesh, "T=300", "isotopes=T", g, "broadening=" + broadening,
                           "convergence=F", "allow_few_processes=T"});
}

/// Weights of all modes at an energy, [mode], by geometry. A weight may jump where modes lie on the
/// shell, so it is the mean of both sides. Branches within 1e-4 rad/ps share their weights.
std::vector<double> oracle_weights(const test::SolvedDeck& s, double energy) {
  const Modes& modes = s.run.modes;
  const auto nb = static_cast<std::size_t>(modes.n_branches);
  const QMesh& mesh = s.problem.mesh;
  std::vector<oracle::Steps3ph> steps;
  for (const Superbase& base : obtuse_superbases(mesh_steps_per_nm(s.deck.crystal, mesh))) {
    oracle::Steps3ph one{};
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t d = 0; d < 3; ++d) one[i][d] = base[i][d];
    steps.push_back(one);
  }
  std::vector<double> weights(static_cast<std::size_t>(modes.n_modes()), 0.0);
  for (std::size_t branch = 0; branch < nb; ++branch) {
    std::vector<double> band;
    for (std::size_t q = 0; q < static_cast<std::size_t>(mesh.size()); ++q)
      band.push_back(modes.omega_rad_ps[q * nb + branch]);
    for (const double side : {-1e-6, 1e-6}) {
      const std::vector<double> found =
          oracle::mesh_weights({mesh.n[0], mesh.n[1], mesh.n[2]}, steps, energy + side, band);
      for (std::size_t q = 0; q < found.size(); ++q) weights[q * nb + branch] += 0.5 * found[q];
    }
  }
  for (std::size_t first = 0; first < weights.size();) {
    std::size_t last = first + 1;
    while (last % nb != 0 && modes.omega_rad_ps[last] - modes.omega_rad_ps[last - 1] < 1e-4) ++last;
    const double sum = std::accumulate(weights.begin() + static_cast<std::ptrdiff_t>(first),
                                       weights.begin() + static_cast<std::ptrdiff_t>(last), 0.0);
    const auto count = static_cast<double>(last - first);
    for (; first < last; ++first) weights[first] = sum / count;
  }
  return weights;
}

// Tamura's double sum with weights by geometry. The limit is for frequencies of a star, which are
// equal to rounding and 1e-6 rad/ps off the shell.
TEST(ElasticTetrahedra, IsotopeRatesAreThoseOfTheOracle) {
  for (const auto& [name, mesh] : {std::pair{"silicon-sw", "5,5,5"}, {"wurtzite-sw", "3,3,2"}}) {
    const auto s = with_isotopes(name, mesh);
    const Modes& modes = s->run.modes;
    const Crystal& crystal = s->deck.crystal;
    const auto nb = static_cast<std::size_t>(modes.n_branches);
    const ElasticDelta delta(crystal, s->problem.mesh, modes, s->deck.control.harmonic_options());
    const std::vector<double> found =
        isotope_rates_per_ps(crystal, s->deck.symmetry, modes, delta, s->problem.omega_max_rad_ps);
    const double largest = *std::max_element(found.begin(), found.end());
    ASSERT_GT(largest, 0.0) << name;
    for (std::size_t row = 0; row < found.size(); ++row) {
      const std::size_t mode =
          static_cast<std::size_t>(s->deck.symmetry.irreducible[row / nb]) * nb + row % nb;
      if (!modes.active(static_cast<std::int64_t>(mode), s->problem.omega_max_rad_ps)) continue;
      const double omega = modes.omega_rad_ps[mode];
      const std::vector<double> weights = oracle_weights(*s, omega);
      double expected = 0.0;
      for (std::size_t other = 0; other < weights.size(); ++other) {
        if (!modes.active(static_cast<std::int64_t>(other), s->problem.omega_max_rad_ps)) continue;
        for (std::size_t atom = 0; 3 * atom < nb; ++atom) {
          std::complex<double> overlap = 0.0;
          for (std::size_t c = 3 * atom; c < 3 * atom + 3; ++c)
            overlap +=
                std::conj(modes.eigenvector[mode * nb + c]) * modes.eigenvector[other * nb + c];
          expected += weights[other] * crystal.g_factor[atom] * std::norm(overlap);
        }
      }
      expected *= units::kPi * omega * omega / (2.0 * static_cast<double>(modes.n_q));
      EXPECT_NEAR(found[row], expected, 1e-8 * largest) << name << " row " << row;
    }
  }
}

// Modes of a star lie on the shell of each other. The mean of both sides of the shell makes rates
// equal over the star.
TEST(ElasticTetrahedra, IsotopeRatesAreEqualOverAStar) {
  for (const auto& [name, mesh] : {std::pair{"silicon-sw", "6,6,6"}, {"wurtzite-sw", "4,4,3"}}) {
    const auto s = with_isotopes(name, mesh);
    Symmetry elsewhere = s->deck.symmetry;
    elsewhere.irreducible = test::at_random_members(*s).rows;
    const ElasticDelta delta(s->deck.crystal, s->problem.mesh, s->run.modes,
                             s->deck.control.harmonic_options());
    std::vector<double> there = isotope_rates_per_ps(s->deck.crystal, elsewhere, s->run.modes,
                                                     delta, s->problem.omega_max_rad_ps);
    average_over_subspaces(s->run.modes, elsewhere.irreducible, 1, there.data());
    const std::vector<double>& here = s->run.isotope_per_ps;
    const double largest = *std::max_element(here.begin(), here.end());
    ASSERT_GT(largest, 0.0);
    double worst = 0.0;
    for (std::size_t i = 0; i < here.size(); ++i)
      if (here[i] > 1e-6 * largest) worst = std::max(worst, std::fabs(there[i] / here[i] - 1.0));
    std::printf("    %s: worst rate difference over a star %.1e\n", name, worst);
    EXPECT_LT(worst, 1e-6) << name;
  }
}

// Both δ tend to one rate on fine meshes: the sums of all rates differ by a few per cent.
TEST(ElasticTetrahedra, IsotopeRatesAreNearThoseOfGaussians) {
  const auto sum_of = [](const std::string& broadening) {
    const auto s = with_isotopes("silicon-sw", "8,8,8", broadening);
    const std::vector<double>& rates = s->run.isotope_per_ps;
    return std::accumulate(rates.begin(), rates.end(), 0.0);
  };
  const double ratio = sum_of("tetrahedra") / sum_of("symmetric");
  std::printf("    rates by tetrahedra over those by Gaussians: %.3f\n", ratio);
  EXPECT_NEAR(ratio, 1.0, 0.1);
}

// The density of states holds 3 states per atom and cell. Its points are 0.1 % of the largest ω
// apart or more, so that the sum over them is near the integral.
TEST(ElasticTetrahedra, TheDensityOfStatesHoldsAllStates) {
  const auto s = with_isotopes("silicon-sw", "8,8,8");
  const DensityOfStates dos = density_of_states(s->transport());
  double states = 0.0, of_atoms = 0.0;
  const auto n = dos.omega_rad_ps.size();
  for (std::size_t i = 0; i < n; ++i) {
    const double low = i == 0 ? 0.0 : dos.omega_rad_ps[i - 1];
    const double high = i + 1 == n ? dos.omega_rad_ps[i] : dos.omega_rad_ps[i + 1];
    states += 0.5 * (high - low) * dos.total_ps[i];
    for (std::size_t atom = 0; atom < 2; ++atom)
      of_atoms += 0.5 * (high - low) * dos.by_atom_ps[2 * i + atom];
  }
  EXPECT_NEAR(states, 6.0, 0.06);
  EXPECT_NEAR(of_atoms, states, 1e-9);
}

}  // namespace
}  // namespace quasi::thermal
