// Tests pseudobands of two-component states (docs/theory/gw.md 9.3 to 9.5 and 15) by exact limits,
// the spin-unpolarised run at λ = 0, Kramers doublets, error bars and bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/gw/support/bars_of_jobs.hpp"
#include "tests/gw/support/pseudoband_crystals.hpp"
#include "tests/gw/support/small_silicon.hpp"

namespace quasi::gw {
namespace {

using test::eight_atoms;
using test::loaded;
using test::run_on_cpus;

constexpr const char* kGermanium = "spin_orbit_ry_bohr2 = 0.013\n";
constexpr const char* kGalliumArsenide = "spin_orbit_ry_bohr2 = [0.0125, 0.0223]\n";

EmpiricalCrystal eight_coupled_atoms() {
  EmpiricalCrystal crystal = eight_atoms("gaas", 4.0, 180);
  crystal.spin_orbit_ry_bohr2 = {0.0125, 0.0223};
  return crystal;
}

// A replaced state n has Σ_k |⟨n|ξ_kr⟩|² = 1/N_ξ for each r over both components, and a
// protected one has 0: 1e-11. Protected states stay as they are.
TEST(SpinorPseudobands, ResolveTheIdentityOfBothComponents) {
  const test::SmallSilicon crystal(eight_coupled_atoms());
  const PseudobandPlan plan = plan_pseudobands(crystal.field, {.vectors = 2}, true);
  ASSERT_FALSE(plan.keeps_all());
  EXPECT_LT(plan.bands(), plan.given);
  EXPECT_LT(plan.identity_error, 1e-13);
  const Wavefunctions made = pseudobands(crystal.field.waves, plan, PseudobandUse::kScreening);
  const std::size_t row = 2 * made.waves[0].g.size();
  const std::vector<Cplx>&given = crystal.field.waves.waves[0].coefficients[0],
        &now = made.waves[0].coefficients[0];
  ASSERT_EQ(now.size(), static_cast<std::size_t>(plan.bands()) * row);
  EXPECT_TRUE(std::equal(
      now.begin(),
      now.begin() + static_cast<std::ptrdiff_t>(plan.kept) * static_cast<std::ptrdiff_t>(row),
      given.begin()));
  for (const int band : {0, plan.kept - 1, plan.kept, plan.given - 1}) {
    double sum = 0.0;
    for (int other = plan.kept; other < plan.bands(); ++other) {
      Cplx overlap;
      for (std::size_t i = 0; i < row; ++i)
        overlap += std::conj(given[static_cast<std::size_t>(band) * row + i]) *
                   now[static_cast<std::size_t>(other) * row + i];
      sum += std::norm(overlap);
    }
    EXPECT_NEAR(sum, band < plan.kept ? 0.0 : 1.0, 1e-11) << band;
  }
}

// Vectors of the complement are orthogonal to the given states in both components together, and
// have unit modulus over N_ξ^½ beyond their sphere.
TEST(SpinorPseudobands, VectorsOfTheComplementAreOrthogonalToTheStates) {
  const test::SmallSilicon crystal(eight_coupled_atoms());
  const Wavefunctions& waves = crystal.field.waves;
  const PseudobandPlan plan = plan_pseudobands(crystal.field, {.vectors = 2}, true);
  const Wavefunctions made = complement_vectors(waves, plan, 3.0);
  const KPointWaves &from = waves.waves[0], &to = made.waves[0];
  const GIndex inside(from.g);
  const std::size_t n = to.g.size(), n_pw = from.g.size();
  ASSERT_EQ(to.coefficients[0].size(), 2 * 2 * n);
  for (std::size_t r = 0; r < 2; ++r) {
    std::vector<Cplx> overlap(static_cast<std::size_t>(plan.given));
    for (std::size_t i = 0; i < 2 * n; ++i) {
      const Cplx eta = to.coefficients[0][r * 2 * n + i];
      const std::int32_t at = inside.find(to.g[i % n]);
      if (at < 0) {
        EXPECT_NEAR(std::norm(eta), 0.5, 1e-14);
        continue;
      }
      for (std::size_t band = 0; band < overlap.size(); ++band)
        overlap[band] +=
            std::conj(
                from.coefficients[0][(2 * band + i / n) * n_pw + static_cast<std::size_t>(at)]) *
            eta;
    }
    for (const Cplx& value : overlap) EXPECT_LT(std::abs(value), 1e-12);
  }
}

// Equal windows and random numbers give equal vectors: the recursion of H as an operator equals the
// sum over all states of its matrix. 1e-8 leaves room for states that are known to a residual of
// 1e-8 Ry. At λ = 0 silicon has real vectors.
TEST(SpinorPseudobands, OfTheRecursionEqualThoseOfAllStates) {
  struct Case {
    const char *name, *coupling;
    bool real;
  };
  for (const Case& c :
       {Case{"gaas", kGalliumArsenide, false}, {"silicon", "spin_orbit_ry_bohr2 = 0.0\n", true}}) {
    const MeanField lowest = loaded(c.name, 4.0, 120, "operator", c.coupling);
    const int n = 2 * static_cast<int>(lowest.waves.waves[0].g.size());
    EXPECT_LT(lowest.waves.n_bands, n / 2);
    const MeanField all = loaded(c.name, 4.0, n, "dense", c.coupling);
    ASSERT_EQ(all.waves.n_bands, n);
    EXPECT_LT(test::difference_from_states(lowest, all.waves, c.real), 1e-8) << c.name;
  }
}

Calculation job(const std::string& mean_field, const std::string& more, int devices = 1) {
  return run_on_cpus(parse_deck("[meanfield]\nsource = \"epm\"\n" + mean_field +
                                    "[epsilon]\ncutoff_ry = 2.5\n" + more,
                                {}, "test", "."),
                     devices);
}

// Every slice is full with as many vectors as states. The job is that of all bands, bit by bit, and
// at λ = 0 the spin-unpolarised one with every level twice: 1e-10 of Σ.
TEST(SpinorPseudobandJobs, FullSlicesAreExact) {
  const std::string grid = "cutoff_ry = 4.0\nk_grid = [2, 2, 1]\n",
                    full = "[pseudobands]\nvectors = 1000\n";
  const std::string coupled = "crystal = \"germanium\"\nbands = 40\n" + grid + kGermanium;
  const Calculation all = job(coupled, "[sigma]\nband_max = 16\n"),
                    kept = job(coupled, "[sigma]\nband_max = 16\n" + full);
  ASSERT_FALSE(all.quasiparticles.empty());
  ASSERT_TRUE(kept.pseudobands && kept.pseudobands->keeps_all());
  for (std::size_t i = 0; i < all.quasiparticles.size(); ++i)
    EXPECT_EQ(kept.quasiparticles[i].sigma_ev, all.quasiparticles[i].sigma_ev);

  const Calculation one = job("bands = 20\n" + grid, "[sigma]\nband_max = 8\n" + full),
                    two = job("bands = 40\nspin_orbit_ry_bohr2 = 0.0\n" + grid,
                              "[sigma]\nband_max = 16\n" + full);
  ASSERT_TRUE(one.pseudobands->keeps_all() && two.pseudobands->keeps_all());
  ASSERT_EQ(two.quasiparticles.size(), 2 * one.quasiparticles.size());
  const std::size_t n = static_cast<std::size_t>(one.plan.sigma.band_max);
  for (std::size_t i = 0; i < two.quasiparticles.size(); ++i) {
    const Quasiparticle& expected = one.quasiparticles[i / (2 * n) * n + i % (2 * n) / 2];
    EXPECT_NEAR(two.quasiparticles[i].sigma_ev, expected.sigma_ev,
                1e-10 * std::abs(expected.sigma_ev));
  }
}

/// Returns a deck of eight atoms of germanium with error bars by one of the eigensolvers.
std::string germanium(const char* solver, int bands) {
  return "crystal = \"germanium\"\ncell = \"cubic\"\ncutoff_ry = 3.5\nbands = " +
         std::to_string(bands) + "\nsolver = \"" + solver + "\"\n" + kGermanium;
}
constexpr const char* kBars =
    "[sigma]\nband_min = 27\nband_max = 34\n[pseudobands]\nvectors = 8\nblocks = 4\n"
    "protected_ry = 0.3\nratio = 0.5\n";

// Pseudobands from given states and by the recursion have the same bits on one and two devices,
// with the bars of their blocks. The bars hold the energies of all bands, to 1.5 half-widths and
// the error of the windows, 0.05 F² eV or 13 meV. Kramers doublets have one energy and one bar,
// 1e-10 eV, since inversion and time reversal make every level even.
TEST(SpinorPseudobandJobs, HaveBarsDoubletsAndTheSameBitsOnTwoDevices) {
  const int n = 2 * test::plane_waves("germanium", 3.5);
  const Calculation all = job(germanium("dense", n), "[sigma]\nband_min = 27\nband_max = 34\n");
  for (const auto& [solver, bands] : {std::pair{"dense", n}, {"operator", 90}}) {
    SCOPED_TRACE(solver);
    const Calculation one = job(germanium(solver, bands), kBars),
                      two = job(germanium(solver, bands), kBars, 2);
    ASSERT_TRUE(one.pseudoband_errors && two.pseudoband_errors);
    const PseudobandErrors& errors = *one.pseudoband_errors;
    ASSERT_EQ(one.quasiparticles.size(), all.quasiparticles.size());
    EXPECT_LT(one.plan.sigma.bands, all.plan.sigma.bands);
    for (std::size_t i = 0; i < all.quasiparticles.size(); ++i) {
      const double found = one.quasiparticles[i].sigma_ev, bar = errors.half_width_ev[i];
      EXPECT_EQ(found, two.quasiparticles[i].sigma_ev);
      EXPECT_EQ(bar, two.pseudoband_errors->half_width_ev[i]);
      EXPECT_EQ(errors.estimate_ev[i], two.pseudoband_errors->estimate_ev[i]);
      EXPECT_GT(bar, 0.0);
      EXPECT_NEAR(errors.estimate_ev[i], all.quasiparticles[i].sigma_ev, 1.5 * bar + 0.013);
      EXPECT_NEAR(found, one.quasiparticles[i ^ 1u].sigma_ev, 1e-10);
      EXPECT_NEAR(bar, errors.half_width_ev[i ^ 1u], 1e-10);
    }
  }
}

// Bars to first order in the change of W against sums that are repeated for each block. With eight
// vectors in four blocks half-widths deviate by less than 10 %, as those of one component.
TEST(SpinorPseudobandJobs, BarsToFirstOrderAreThoseOfRepeatedSums) {
  const std::string crystal = germanium("dense", 2 * test::plane_waves("germanium", 3.5));
  const Calculation first = job(crystal, kBars),
                    exact = job(crystal, std::string(kBars) + "block_sums = \"exact\"\n");
  ASSERT_EQ(first.quasiparticles.size(), exact.quasiparticles.size());
  for (std::size_t i = 0; i < first.quasiparticles.size(); ++i) {
    EXPECT_NEAR(first.quasiparticles[i].sigma_ev, exact.quasiparticles[i].sigma_ev, 1e-12);
    const double bar = exact.pseudoband_errors->half_width_ev[i];
    EXPECT_NEAR(first.pseudoband_errors->half_width_ev[i], bar, 0.1 * bar);
    EXPECT_NEAR(first.pseudoband_errors->estimate_ev[i], exact.pseudoband_errors->estimate_ev[i],
                0.1 * bar);
  }
}

}  // namespace
}  // namespace quasi::gw
