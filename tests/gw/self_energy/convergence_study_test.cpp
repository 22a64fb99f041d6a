// --converge: fewer bands, lower cut-offs, coarser grids, and whether the errors it states are
// honest.

#include "workers/gw/solver/calculation/convergence_study.hpp"
#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/mean_field/density.hpp"
#include "workers/gw/solver/screening/epsilon.hpp"
#include "workers/gw/solver/screening/sub_grid.hpp"

namespace quasi::gw {
namespace {

std::string deck_text(int bands, double cutoff_ry, const std::string& grid = "[4, 4, 4]",
                      const std::string& further = "",
                      const std::string& mean_field = "cutoff_ry = 6.0\nbands = 48") {
  return "kind = \"gw\"\n" + further + R"(
[meanfield]
source = "epm"
)" + mean_field +
         R"(
k_grid = )" +
         grid + R"(
[epsilon]
cutoff_ry = )" +
         std::to_string(cutoff_ry) + "\nbands = " + std::to_string(bands) + R"(
[sigma]
kpoints = [[0.0, 0.0, 0.0]]
band_min = 2
band_max = 8
bands = )" +
         std::to_string(bands) + "\n";
}

struct Solved {
  std::unique_ptr<GwKernels> kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team{*kernels};
  SilentProgress silent;
  Workplace place{
      .team = team, .memory_budget_bytes = std::int64_t{1} << 30, .checkpoint_directory = {}};
  Deck deck;
  Calculation run;
  explicit Solved(const std::string& text)
      : deck(parse_deck(text, {}, "test", ".")), run(run_calculation(deck, place, silent)) {}
  ConvergenceStudy study() { return study_convergence(deck, place, run, silent); }
};

const StudyAxis& axis_of(const ConvergenceStudy& study, const std::string& name) {
  for (const StudyAxis& axis : study.axes)
    if (axis.name == name) return axis;
  throw std::runtime_error("no axis " + name);
}

TEST(ConvergenceLimit, StraightLinesCurvesAndTwoPoints) {
  const auto line = limit_of_finest({0.5, 0.25, 0.1}, {2.0, 1.5, 1.2});
  EXPECT_NEAR(line.value, 1.0, 1e-14);
  EXPECT_NEAR(line.error, 0.2 + 0.3, 1e-14);  // what it adds, and the last step
  const auto two = limit_of_finest({0.5, 0.25}, {2.0, 1.5});
  EXPECT_NEAR(two.value, 1.0, 1e-14);
  EXPECT_NEAR(two.error, 1.0 + 0.5, 1e-14);
  // y = x + x²: the truth 0 lies within the error.
  const auto curve = limit_of_finest({0.4, 0.2, 0.1}, {0.56, 0.24, 0.11});
  EXPECT_NEAR(curve.value, -0.02, 1e-14);
  EXPECT_NEAR(curve.error, 0.13 + 0.13, 1e-14);
}

// A coarser grid taken out of a finer one is the mean field made on it: same ε, for either limit q
// → 0. States of multiplets may come in another gauge, which sums over whole multiplets do not see;
// 1e-10 of the largest element.
TEST(SubGrid, IsTheMeanFieldMadeOnTheCoarserGrid) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  for (const bool by_velocity : {true, false}) {
    EmpiricalCrystal crystal;
    crystal.wavefunction_cutoff_ry = 6.0;
    crystal.bands = 18;
    crystal.k_grid = {4, 4, 4};
    crystal.by_velocity = by_velocity;
    const MeanField coarse =
        on_sub_grid(empirical_mean_field(crystal, *kernels, silent), {2, 2, 2});
    crystal.k_grid = {2, 2, 2};
    const MeanField made = empirical_mean_field(crystal, *kernels, silent);
    ASSERT_EQ(coarse.waves.k.size(), made.waves.k.size());
    ASSERT_EQ(coarse.zone.size(), 8);
    const CoulombInteraction coulomb(made.crystal(), made.waves.k_grid, {});
    const EpsilonOptions options{
        .epsilon_cutoff_ry = 3.0,
        .bands = band_count_without_split(made.waves, made.waves.n_bands, 5, "bands")};
    for (const Vec3& q : screening_points(made)) {
      const auto a = dielectric_matrix(coarse, q, options, coulomb, *kernels, silent).inverse[0];
      const auto b = dielectric_matrix(made, q, options, coulomb, *kernels, silent).inverse[0];
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_LE(std::abs(a[i] - b[i]), 1e-10) << i;
    }
  }
  EXPECT_THROW(
      on_sub_grid(empirical_mean_field({.k_grid = {2, 2, 2}}, *kernels, silent), {3, 3, 3}),
      InvalidInput);
  EXPECT_EQ(coarser_grids({4, 4, 1}), (std::vector<IVec3>{{1, 1, 1}, {2, 2, 1}}));
  EXPECT_EQ(coarser_grids({3, 3, 3}), (std::vector<IVec3>{{1, 1, 1}}));
  EXPECT_TRUE(coarser_grids({1, 1, 1}).empty());
}

// Each calculation of the study is what a deck of its own gives, to the bit: only the deck differs.
TEST(ConvergenceStudy, CalculationsAreThoseOfSeparateDecks) {
  Solved solved(deck_text(40, 3.0, "[2, 2, 2]"));
  const ConvergenceStudy study = solved.study();
  ASSERT_EQ(study.axes.size(), 4u);
  EXPECT_FALSE(study.quasiparticle);
  const StudyAxis& bands = axis_of(study, "bands");
  ASSERT_EQ(bands.setting.size(), 3u);
  const Solved fewer(deck_text(static_cast<int>(bands.setting[0]), 3.0, "[2, 2, 2]"));
  for (std::size_t j = 0; j < bands.states.size(); ++j)
    EXPECT_EQ(bands.energy_ev[0][j], fewer.run.quasiparticles[bands.states[j]].sigma_ev);
  const StudyAxis& cutoff = axis_of(study, "cutoff_ry");
  const Solved lower(deck_text(40, cutoff.setting[1], "[2, 2, 2]"));
  for (std::size_t j = 0; j < cutoff.states.size(); ++j)
    EXPECT_EQ(cutoff.energy_ev[1][j], lower.run.quasiparticles[cutoff.states[j]].sigma_ev);
  const StudyAxis& grid = axis_of(study, "k_grid");
  EXPECT_EQ(grid.grids, (std::vector<IVec3>{{1, 1, 1}, {2, 2, 2}}));
  // The mean field that was lent is back.
  EXPECT_EQ(solved.run.field.waves.k.size(), 3u);
  EXPECT_EQ(axis_of(study, "bare_cutoff_ry").setting.back(), 6.0);
}

// The stated error covers the truth, for every state: a study of few bands against all bands of the
// basis, one of a low cut-off against one three times as high.
TEST(ConvergenceStudy, StatedErrorsCoverBetterCalculations) {
  const std::string basis = "cutoff_ry = 12.0\nbands = 140";
  Solved solved(deck_text(40, 4.0, "[2, 2, 2]", "", basis));
  const ConvergenceStudy study = solved.study();
  const Solved all_bands(deck_text(140, 4.0, "[2, 2, 2]", "", basis));
  const StudyAxis& bands = axis_of(study, "bands");
  for (std::size_t j = 0; j < bands.states.size(); ++j) {
    const double truth = all_bands.run.quasiparticles[bands.states[j]].sigma_ev;
    EXPECT_LE(std::abs(bands.limit[j].value - truth), bands.limit[j].error)
        << j << ": " << bands.energy_ev.back()[j] << " → " << bands.limit[j].value << ", truth "
        << truth;
    EXPECT_GT(std::abs(bands.energy_ev.back()[j] - truth), 0.0);
  }
  const Solved high_cutoff(deck_text(40, 12.0, "[2, 2, 2]", "", basis));
  const StudyAxis& cutoff = axis_of(study, "cutoff_ry");
  for (std::size_t j = 0; j < cutoff.states.size(); ++j) {
    const double truth = high_cutoff.run.quasiparticles[cutoff.states[j]].sigma_ev;
    EXPECT_LE(std::abs(cutoff.limit[j].value - truth), cutoff.limit[j].error)
        << j << ": " << cutoff.energy_ev.back()[j] << " → " << cutoff.limit[j].value << ", truth "
        << truth;
  }
}

// The error of a 4×4×4 grid covers the change to 6×6×6 for every state of Γ. The limit is that of
// the law which changes more: regular terms fall as 1/N_k, the mini-zone around q = 0 leaves 1/n.
TEST(ConvergenceStudy, ErrorsOfTheKGridCoverAFinerGrid) {
  const std::string basis = "cutoff_ry = 5.0\nbands = 18";
  Solved solved(deck_text(18, 2.5, "[4, 4, 4]", "", basis));
  const ConvergenceStudy study = solved.study();
  const Solved finer(deck_text(18, 2.5, "[6, 6, 6]", "", basis));
  const StudyAxis& grid = axis_of(study, "k_grid");
  ASSERT_EQ(grid.setting.back(), 64.0);
  for (std::size_t i = 0; i < grid.other_x.size(); ++i)
    EXPECT_NEAR(grid.other_x[i], 1.0 / std::cbrt(grid.setting[i]), 1e-14);
  for (std::size_t j = 0; j < grid.states.size(); ++j) {
    const double truth = finer.run.quasiparticles[grid.states[j]].sigma_ev;
    std::vector<double> y;
    for (const auto& row : grid.energy_ev) y.push_back(row[j]);
    const auto by_points = limit_of_finest(grid.x, y), by_edge = limit_of_finest(grid.other_x, y);
    EXPECT_LE(std::abs(grid.limit[j].value - truth), grid.limit[j].error) << j;
    const auto reach = [&](const ConvergenceLimit& limit) {
      return std::abs(limit.value - y.back()) + limit.error;
    };
    EXPECT_EQ(reach(grid.limit[j]), std::max(reach(by_points), reach(by_edge))) << j;
  }
}

/// Two spins of one set of wavefunctions: the first occupies four bands, the second one band.
MeanField two_spins(const MeanField& field, GwKernels& kernels) {
  Wavefunctions waves = field.waves;
  waves.header.n_spins = 2;
  for (KPointWaves& point : waves.waves) point.coefficients.push_back(point.coefficients[0]);
  for (auto* list : {&waves.first_occupied, &waves.last_occupied})
    list->insert(list->end(), list->begin(), list->end());
  for (auto* list : {&waves.energy_ry, &waves.occupation})
    list->insert(list->end(), list->begin(), list->end());
  const std::size_t n_k = waves.k.size(), n_bands = static_cast<std::size_t>(waves.n_bands);
  for (std::size_t ik = 0; ik < n_k; ++ik) {
    waves.last_occupied[n_k + ik] = 1;
    for (std::size_t n = 1; n < n_bands; ++n) waves.occupation[(n_k + ik) * n_bands + n] = 0.0;
  }
  PlaneWaveField density{.header = field.density.header, .values = {}};
  density.header.n_spins = 2;
  density.values = summed_density(waves, field.zone, {4, 1}, density.header.g, kernels);
  MeanField made = make_mean_field(std::move(waves), {}, std::move(density));
  made.by_velocity = true;
  made.q0 = field.q0;
  return made;
}

// The gap of a study counts the occupied bands of each spin by itself: its last value is the job's
// own gap, for every axis whose calculations hold all states.
TEST(ConvergenceStudy, TheGapOfTwoSpinsIsTheJobsOwn) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team(*kernels);
  SilentProgress silent;
  quasi::test::TemporaryDirectory directory;
  const Workplace place{
      .team = team, .memory_budget_bytes = std::int64_t{1} << 30, .checkpoint_directory = {}};
  EmpiricalCrystal crystal{.name = "gaas", .wavefunction_cutoff_ry = 5.0, .bands = 16};
  crystal.by_velocity = true;
  const MeanField field = two_spins(empirical_mean_field(crystal, *kernels, silent), *kernels);
  PlaneWaveField zero = field.density;
  zero.header.title = "VXC-Complex";
  for (auto& spin : zero.values)
    for (Cplx& value : spin) value = 0.0;
  write_field(directory.path() / "VXC", zero);
  Deck deck = parse_deck(
      "[meanfield]\nwfn = \"WFN\"\nrho = \"RHO\"\nvxc = \"VXC\"\n"
      "[epsilon]\ncutoff_ry = 2.5\n[sigma]\nband_max = 6\n",
      {}, "test", directory.path());
  Calculation run = solve_mean_field(deck, field, place, silent);
  const ConvergenceStudy study = study_convergence(deck, place, run, silent);
  const Gaps own = gaps(run.field, run.quasiparticles);
  ASSERT_TRUE(own.fundamental_ev.has_value());
  for (const char* name : {"bands", "cutoff_ry", "bare_cutoff_ry"})
    EXPECT_NEAR(axis_of(study, name).gap_ev.back(), *own.fundamental_ev, 1e-12) << name;
}

TEST(ConvergenceStudy, RefusesWhatItCannotDo) {
  const auto text_of = [](const std::string& further) {
    return deck_text(30, 3.0, "[2, 2, 2]", further);
  };
  EXPECT_THROW(parse_deck(text_of("") + "[converge]\nbands = [10]\n", {}, "test", "."),
               InvalidInput);
  for (const char* further : {"[converge]\nbands = [10, 60]\n", "[converge]\ncutoffs_ry = [3.5]\n",
                              "[converge]\nk_grids = [[3, 3, 3]]\n"}) {
    Solved solved(text_of("convergence_study = true") + further);
    EXPECT_THROW(solved.study(), InvalidInput) << further;
  }
}

}  // namespace
}  // namespace quasi::gw
