// The known closed sum over all states, subtracted from Σ by pseudobands (docs/theory/gw.md 9.4).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/gw/support/pseudoband_crystals.hpp"
#include "tests/gw/support/small_silicon.hpp"
#include "workers/backend/error.hpp"
#include "workers/backend/stopwatch.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/pseudobands.hpp"

namespace quasi::gw {
namespace {

using test::edges;
using test::eight_atoms;
using test::Statistics;

/// Every plane wave of the spheres of complement_vectors(), made orthogonal to the states. The sum
/// of the projectors on these vectors is the projector on the complement.
Wavefunctions whole_complement(const Wavefunctions& waves, double epsilon_cutoff_ry) {
  const PseudobandPlan plan{.given = waves.n_bands, .chosen = {0}, .used = {}};
  Wavefunctions made = complement_vectors(waves, plan, epsilon_cutoff_ry);
  std::size_t most = 0;
  for (const KPointWaves& at : made.waves) most = std::max(most, at.g.size());
  const auto n_spinor = static_cast<std::size_t>(waves.header.n_spinor);
  made.n_bands = static_cast<int>(n_spinor * most);
  for (std::size_t ik = 0; ik < made.waves.size(); ++ik) {
    const std::vector<IVec3>& g = made.waves[ik].g;
    const KPointWaves& from = waves.waves[ik];
    const GIndex index(g);
    const std::size_t length = n_spinor * g.size(), n = n_spinor * from.g.size();
    std::vector<std::size_t> place;
    for (std::size_t i = 0; i < n; ++i)
      place.push_back(i / from.g.size() * g.size() +
                      static_cast<std::size_t>(index.find(from.g[i % from.g.size()])));
    std::vector<Cplx> rows(n_spinor * most * length);
    for (std::size_t i = 0; i < length; ++i) rows[i * length + i] = 1.0;
    for (std::size_t band = 0; band < static_cast<std::size_t>(waves.n_bands); ++band) {
      const Cplx* const c = from.coefficients[0].data() + band * n;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
          rows[place[i] * length + place[j]] -= std::conj(c[i]) * c[j];
    }
    made.waves[ik].coefficients = {std::move(rows)};
  }
  return made;
}

// With the whole complement the known sum and the summed one are equal, so that nothing is added.
// The grid has rotated points, and silicon and GaAs have fractional translations or complex states.
// The sums have some 10⁴ terms of 1 eV, so that rounding is below 1e-9 eV.
void expect_no_closed_sum(const EmpiricalCrystal& crystal, int band_max,
                          const std::vector<int>& kpoints) {
  test::SmallSilicon small(crystal);
  SigmaOptions options = small.options(band_max);
  options.kpoints = kpoints;
  const auto plain = small.sigma(options);
  small.field.complement = whole_complement(small.field.waves, 3.0);
  options.closed_sum_x_ry = kClosedSumX_ry;
  const auto closed = small.sigma(options);
  double least = 1e300;
  for (std::size_t i = 0; i < plain.size(); ++i)
    for (std::size_t l = 0; l < plain[i].x_ry.size(); ++l) {
      EXPECT_NEAR(std::abs(closed[i].closed_sum_ry[l]), 0.0, 1e-10) << i << " " << l;
      EXPECT_EQ(closed[i].ch_ry[0][l], plain[i].ch_ry[0][l] + closed[i].closed_sum_ry[l]);
    }
  // The first 60 vectors belong to the longest plane waves of the states and miss most of the
  // sum.
  small.field.complement->n_bands = 60;
  for (KPointWaves& at : small.field.complement->waves)
    at.coefficients[0].resize(static_cast<std::size_t>(60 * small.field.n_spinor()) * at.g.size());
  for (const SelfEnergyAtK& sum : small.sigma(options))
    for (const Cplx value : sum.closed_sum_ry) least = std::min(least, std::abs(value));
  EXPECT_GT(least, 1e-4);
}
TEST(ClosedSum, VanishesWithTheWholeComplement) {
  for (const char* name : {"silicon", "gaas"}) {
    SCOPED_TRACE(name);
    EmpiricalCrystal crystal = test::SmallSilicon::small_crystal();
    crystal.name = name;
    crystal.wavefunction_cutoff_ry = 4.0;
    expect_no_closed_sum(crystal, 8, {0, 1});
  }
}
TEST(ClosedSum, VanishesWithTheWholeComplementOfSpinors) {
  EmpiricalCrystal crystal = test::SmallSilicon::small_crystal();
  crystal.name = "gaas";
  crystal.spin_orbit_ry_bohr2 = {0.0125, 0.0223};
  crystal.wavefunction_cutoff_ry = 3.0;
  crystal.bands = 20;
  expect_no_closed_sum(crystal, 10, {1});
}

// η is orthogonal to the given states and has |η| = N^−½ beyond their sphere.
TEST(ClosedSum, VectorsOfTheComplementAreOrthogonalToTheStates) {
  const test::SmallSilicon silicon(eight_atoms("gaas"));
  const Wavefunctions& waves = silicon.field.waves;
  const PseudobandPlan plan = plan_pseudobands(silicon.field, {.vectors = 2}, true);
  const Wavefunctions made = complement_vectors(waves, plan, 3.0);
  const KPointWaves &from = waves.waves[0], &to = made.waves[0];
  const GIndex inside(from.g);
  const std::size_t n = to.g.size();
  ASSERT_GT(n, from.g.size());
  ASSERT_EQ(made.n_bands, 2);
  for (std::size_t r = 0; r < 2; ++r) {
    std::vector<Cplx> overlap(static_cast<std::size_t>(plan.given));
    for (std::size_t i = 0; i < n; ++i) {
      const Cplx eta = to.coefficients[0][r * n + i];
      const std::int32_t at = inside.find(to.g[i]);
      if (at < 0) {
        EXPECT_NEAR(std::norm(eta), 0.5, 1e-14);
        continue;
      }
      for (std::size_t band = 0; band < overlap.size(); ++band)
        overlap[band] +=
            std::conj(from.coefficients[0][band * from.g.size() + static_cast<std::size_t>(at)]) *
            eta;
    }
    for (const Cplx value : overlap) EXPECT_NEAR(std::abs(value), 0.0, 1e-12);
  }
}

/// Σ of both edges at fixed W for many seeds, with or without the closed sum, eV.
struct Edges {
  std::vector<double> top, bottom;
  double seconds = 0.0;
};
Edges edges_of_seeds(test::SmallSilicon& crystal, SigmaOptions options, int vectors,
                     Closure closure) {
  constexpr int kSeeds = 120;
  Edges found;
  const Stopwatch clock;
  for (int seed = 0; seed < kSeeds; ++seed) {
    MeanField field = crystal.field;
    const PseudobandPlan plan =
        plan_pseudobands(field, {.vectors = vectors, .ratio = 0.1, .seed = seed}, true);
    field.waves = pseudobands(crystal.field.waves, plan, PseudobandUse::kSelfEnergy);
    options.bands = field.waves.n_bands;
    if (closure == Closure::kSigma) {
      field.complement = complement_vectors(crystal.field.waves, plan, 3.0);
      options.closed_sum_x_ry = kClosedSumX_ry;
    }
    const auto [top, bottom] =
        edges(field, crystal.sigma(field, crystal.epsilon, options), options);
    found.top.push_back(top);
    found.bottom.push_back(bottom);
  }
  found.seconds = clock.seconds() / kSeeds;
  return found;
}

// The mean of 120 seeds is that of all bands within three standard errors and the error of the
// windows, below 0.5 meV at F = 0.1 (Σ at fixed W is linear in the vectors). The spread falls.
void expect_less_noise(const std::string& name) {
  test::SmallSilicon crystal(eight_atoms(name, 8.0, 420));
  SigmaOptions options = crystal.options(
      whole_band_counts(crystal.field.waves, crystal.field.n_occupied + 1, 40).front());
  options.band_min = 14;
  const auto exact = edges(crystal.field, crystal.sigma(options), options);
  const Edges plain = edges_of_seeds(crystal, options, 1, Closure::kNone),
              closed = edges_of_seeds(crystal, options, 1, Closure::kSigma);
  const auto expect = [&](const std::vector<double>& before, const std::vector<double>& after,
                          double value, const char* what) {
    const Statistics b(before), a(after);
    const double ratio = b.error / a.error;
    std::printf(
        "%s %s: error %.4f +- %.4f eV, with closure %.4f +- %.4f eV; spread %.4f and %.4f "
        "eV; seconds %.4f and %.4f; at equal cost %.2f times less noise\n",
        name.c_str(), what, b.mean - value, b.error, a.mean - value, a.error,
        b.error * std::sqrt(120.0), a.error * std::sqrt(120.0), plain.seconds, closed.seconds,
        ratio * std::sqrt(plain.seconds / closed.seconds));
    EXPECT_NEAR(a.mean, value, 3.0 * a.error + 5e-4) << what;
    EXPECT_GT(ratio, 2.0) << what;
  };
  expect(plain.top, closed.top, exact.first, "valence top");
  expect(plain.bottom, closed.bottom, exact.second, "conduction bottom");
}
TEST(ClosedSum, LessNoiseAndNoBiasSilicon) { expect_less_noise("silicon"); }
TEST(ClosedSum, LessNoiseAndNoBiasGalliumArsenide) { expect_less_noise("gaas"); }

constexpr const char* kCrystal =
    "[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\n[epsilon]\ncutoff_ry = 3.0\n"
    "[sigma]\nband_min = 14\nband_max = 18\n";

Calculation run(const std::string& sigma, const std::string& pseudobands, double cutoff_ry = 8.0,
                int devices = 1) {
  SilentProgress silent;
  DeviceTeam team(std::vector<Device>(static_cast<std::size_t>(devices), find_device("cpu")));
  return run_calculation(parse_deck(kCrystal + sigma + "[pseudobands]\nvectors = 2\n" + pseudobands,
                                    {Setting{"meanfield.cutoff_ry", std::to_string(cutoff_ry)},
                                     Setting{"meanfield.bands", cutoff_ry > 6.0 ? "420" : "170"}},
                                    "test", "."),
                         {.team = team, .memory_budget_bytes = std::int64_t{1} << 30}, silent);
}
bool notes(const Calculation& run, const std::string& text) {
  return std::any_of(run.plan.notes.begin(), run.plan.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

// The default subtracts the sum where the states reach five plasma energies (6.1 Ry in silicon).
TEST(ClosedSumJobs, TheDefaultFollowsTheStatesAndBitsDoNotDependOnDevices) {
  const Calculation one = run("", ""), three = run("", "", 8.0, 3),
                    without = run("", "closure = \"none\"\n"), low = run("", "", 5.0),
                    asked = run("", "closure = \"sigma\"\n", 5.0);
  EXPECT_TRUE(notes(one, "is subtracted from"));
  EXPECT_FALSE(notes(without, "closed sum"));
  EXPECT_TRUE(notes(low, "is not subtracted from"));
  EXPECT_TRUE(notes(asked, "is subtracted from"));
  ASSERT_FALSE(one.quasiparticles.empty());
  for (std::size_t i = 0; i < one.quasiparticles.size(); ++i) {
    EXPECT_EQ(one.quasiparticles[i].sigma_ev, three.quasiparticles[i].sigma_ev);
    EXPECT_NE(one.quasiparticles[i].sigma_ev, without.quasiparticles[i].sigma_ev);
    EXPECT_NEAR(one.quasiparticles[i].sigma_ev, without.quasiparticles[i].sigma_ev, 0.3);
    EXPECT_EQ(one.quasiparticles[i].z, without.quasiparticles[i].z);
  }
  EXPECT_TRUE(low.sigma[0].closed_sum_ry.empty());
  EXPECT_EQ(asked.sigma[0].closed_sum_ry.size(), asked.quasiparticles.size());
}

TEST(ClosedSumJobs, ClosureNeedsPlasmonPolesAndVectors) {
  const auto refusal_of = [](const auto& part) -> std::string {
    try {
      part();
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal_of([] {
              run("method = \"cohsex\"\n", "closure = \"sigma\"\n");
            }).find("sigma.exact_ch"),
            std::string::npos);
  EXPECT_NE(refusal_of([] {
              parse_deck(std::string(kCrystal) + "[pseudobands]\nclosure = \"none\"\n", {}, "test",
                         ".");
            }).find("pseudobands.closure"),
            std::string::npos);
}

}  // namespace
}  // namespace quasi::gw
