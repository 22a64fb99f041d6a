// Tests roughness and impurities of the beam scheme: equilibrium, conservation, and the mobility of
// a long film.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "tests/mosfet/beam/beam_fixture.hpp"
#include "tests/mosfet/beam/small_device.hpp"
#include "tests/mosfet/fixtures.hpp"
#include "tests/support/every_device.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/kernels/beam/beam_kernels.hpp"
#include "workers/mosfet/kernels/transport/transport_cpu.hpp"
#include "workers/mosfet/solver/beam/elastic_tables.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"
#include "workers/mosfet/solver/transport/mobility.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

using Settings = std::vector<Setting>;

const Settings kRough{{"scattering.enabled", "[]"}, {"scattering.roughness.height_nm", "0.5"}};
// The weaker rates of Brooks and Herring, because GMRES needs a number of products that grows with
// the length of the film in mean free paths.
const Settings kImpurities{{"scattering.impurities", "true"},
                           {"scattering.impurity_model", "brooks-herring"}};
const Settings kDoped{{"scattering.enabled", "[]"}, kImpurities[0], kImpurities[1]};
const Settings kBoth{{"scattering.roughness.height_nm", "0.5"}, kImpurities[0], kImpurities[1]};

Settings joined(Settings all, const Settings& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Holds the choices of a film.
struct FilmOptions {
  int tens_nm = 3;  ///< length in units of 10 nm
  int n_kappa = 8;
  double barrier_ev = 0.0;  ///< 0: the levels are flat
  bool fermi = false;
  double drain_g = 1.0;  ///< g that enters at the drain; 1 enters at the source
  double dh_ev = 0.0125;
};

/// Holds a uniformly doped film with three pairs and two subbands, at fixed levels.
struct Film {
  Film(const Settings& settings, const FilmOptions& o)
      : deck(deck_of(settings, o)),
        structure(make_structure(deck)),
        setup(make_transport_problem(deck, structure)),
        elastic(deck, structure),
        levels(levels_of(o)),
        geometry(make_beam_geometry(grid_of(o), levels)),
        tables(cells(o)),
        scattering(geometry, levels, setup.processes, overlap(), {0, 1, 0, 1, 2, 3}, tables),
        inflow(make_beam_inflow(geometry.grid, 0.0)),
        problem(geometry, scattering, inflow, BeamOrder::kThird) {
    for (double& g : inflow.drain) g *= o.drain_g;
  }

  static Deck deck_of(const Settings& settings, const FilmOptions& o) {
    const std::string side = std::to_string(4 * o.tens_nm) + ".0";
    return test::default_deck(10 * o.tens_nm + 1, 17,
                              joined({{"mesh.subbands", "2"},
                                      {"mesh.nw", "24"},
                                      {"geometry.source_nm", side},
                                      {"geometry.channel_nm", std::to_string(2 * o.tens_nm) + ".0"},
                                      {"geometry.drain_nm", side},
                                      {"doping.contact_cm3", "1e19"},
                                      {"doping.channel_cm3", "1e19"},
                                      {"statistics.kind", o.fermi ? "fermi" : "maxwell"}},
                                     settings));
  }
  BeamLevels levels_of(const FilmOptions& o) {
    const Structure& s = structure;
    field.subbands =
        solve_subbands(s, std::vector<double>(static_cast<std::size_t>(s.nx) * s.nz, 0.0));
    BeamLevels made{.valleys = s.valleys, .subbands = 2, .nx = s.nx};
    for (int v = 0; v < s.n_valleys(); ++v)
      for (int p = 0; p < s.subbands; ++p)
        for (int i = 0; i < s.nx; ++i)
          made.edge_ev.push_back(
              field.energy(s, v, p, i) - (o.fermi ? 0.15 : 0.0) +
              test::profile_ev(test::kLength_nm * i / (s.nx - 1), o.barrier_ev, 0.0));
    return made;
  }
  BeamGrid grid_of(const FilmOptions& o) const {
    return make_beam_grid({.dh_ev = o.dh_ev, .n_kappa = o.n_kappa}, levels, structure.dx_nm,
                          setup.alpha_per_ev, {.kt_ev = setup.kt_ev, .fermi = o.fermi});
  }
  std::vector<double> overlap() const {
    std::vector<double> all(16 * static_cast<std::size_t>(structure.nx));
    overlaps(setup, field.subbands.psi.data(), all.data());
    return all;
  }
  BeamCellTables cells(const FilmOptions& o) const {
    BeamCellTables made{
        .filling = {},
        .roughness = elastic.roughness(setup, geometry.grid, levels, field.subbands.psi),
        .relaxation_fs = elastic.relaxation_fs(geometry.grid, levels)};
    const BeamGrid& grid = geometry.grid;
    if (!o.fermi || setup.processes.empty()) return made;
    made.filling.resize(static_cast<std::size_t>(6 * grid.nx) * grid.n_h);
    for (std::size_t at = 0; at < made.filling.size(); ++at)
      made.filling[at] =
          fermi_function(-grid.centre_ev(static_cast<int>(at % grid.n_h)) / setup.kt_ev);
    return made;
  }

  /// Loads the film and returns the steady state from a random start.
  BeamSolution solve(BeamKernels& kernels, double tolerance) const {
    kernels.load({.grid = geometry.grid,
                  .levels = levels,
                  .processes = setup.processes,
                  .overlap = overlap(),
                  .level_of = {0, 1, 0, 1, 2, 3},
                  .filling = tables.filling,
                  .roughness = tables.roughness,
                  .relaxation_fs = tables.relaxation_fs,
                  .inflow = inflow});
    const std::size_t rows = scattering.states().size();
    BeamSolution found{kernels.solve(tolerance, 400, test::random_values(rows, 0.9, 1.1, 7)),
                       kernels.distribution()};
    EXPECT_TRUE(found.converged) << found.residual;
    return found;
  }
  /// Returns the current of every cell of H through a face, one valley of each pair.
  std::vector<double> current(const std::vector<double>& g, int face) const {
    const std::vector<double> all = problem.face_currents(g);
    const int nk = geometry.grid.n_h;
    std::vector<double> sum(static_cast<std::size_t>(nk));
    for (std::size_t at = 0; at < all.size(); ++at)
      if (static_cast<int>(at / nk) % (structure.nx + 1) == face) sum[at % nk] += all[at];
    return sum;
  }

  Deck deck;
  Structure structure;
  TransportProblem setup;
  ElasticTables elastic;
  Equilibrium field;
  BeamLevels levels;
  BeamGeometry geometry;
  BeamCellTables tables;
  BeamScattering scattering;
  BeamInflow inflow;
  BeamOperator problem;
};

// Elastic scattering leaves every f(H) alone, on any levels.
TEST(BeamElastic, EveryFunctionOfTheTotalEnergyIsSteady) {
  for (const Settings& settings : {kRough, kDoped, joined(kRough, kDoped)}) {
    const Film film(settings, {.barrier_ev = 0.2});
    const BeamGrid& grid = film.geometry.grid;
    const std::vector<double> of_h = test::random_values(grid.n_h, 0.1, 1.0, 5);
    std::vector<double> g(film.problem.size());
    for (std::size_t at = 0; at < g.size(); ++at) g[at] = of_h[at / grid.n_kappa % grid.n_h];
    const std::vector<double> mean = film.scattering.mean(g), gain = film.scattering.gain(mean);
    double lost = 0.0;
    for (std::size_t row = 0; row < mean.size(); ++row) {
      if (!(film.scattering.states()[row] > 0.0)) continue;
      const double rate = film.scattering.loss()[row];
      ASSERT_NEAR(gain[row], rate * mean[row], 1e-13 * rate) << row;
      lost = std::max(lost, rate);
    }
    EXPECT_GT(lost, 1e-3);
  }
}

class BeamElasticOn : public test::OnEveryDevice {
 protected:
  const std::unique_ptr<BeamKernels> kernels_ = make_beam_kernels(GetParam());
};

// Together with all phonons the steady state without bias is the equilibrium, with either
// statistics.
TEST_P(BeamElasticOn, TheSteadyStateWithoutBiasIsTheEquilibrium) {
  for (const bool fermi : {false, true}) {
    const Film film(kBoth, {.barrier_ev = 0.15, .fermi = fermi});
    const BeamGrid& grid = film.geometry.grid;
    std::vector<double> g(film.problem.size());
    for (std::size_t at = 0; at < g.size(); ++at)
      g[at] = film.inflow.source[at / grid.n_kappa % grid.n_h];
    const std::vector<double> found =
                                  beam_sheet_density(film.geometry, film.solve(*kernels_, 1e-13).g),
                              expected = beam_sheet_density(film.geometry, g);
    for (std::size_t at = 0; at < found.size(); ++at)
      EXPECT_NEAR(found[at] / expected[at], 1.0, fermi ? 1e-8 : 1e-10) << fermi << ' ' << at;
  }
}

// Roughness and impurities keep the energy of every electron, so that each cell of H carries the
// same current through every column, and phonons take no power.
TEST_P(BeamElasticOn, EveryEnergyKeepsItsCurrent) {
  const Film film(joined(kRough, kDoped), {.drain_g = 0.5});
  const BeamSolution found = film.solve(*kernels_, 1e-13);
  const std::vector<double> entering = film.current(found.g, 0);
  const double scale = test::largest(entering);
  EXPECT_GT(scale, 0.0);
  for (const int face : {10, 20, 30}) {
    const std::vector<double> passing = film.current(found.g, face);
    for (std::size_t k = 0; k < passing.size(); ++k)
      EXPECT_NEAR(passing[k], entering[k], 1e-9 * scale) << face << ' ' << k;
  }
  EXPECT_EQ(test::largest(kernels_->fluxes().phonon_power), 0.0);
}

// Roughness, impurities and phonons together conserve electrons and energy. The power of the
// phonons is that which the energy flux loses along x.
TEST_P(BeamElasticOn, ElectronsAndEnergyAreConserved) {
  const Film film(kBoth, {.barrier_ev = 0.1, .drain_g = 0.2});
  film.solve(*kernels_, 1e-13);
  const BeamFluxes fluxes = kernels_->fluxes();
  for (const double current : fluxes.current)
    EXPECT_NEAR(current, fluxes.current.front(), 1e-10 * fluxes.current.front());
  EXPECT_LT(fluxes.energy_defect, 1e-10 * fluxes.energy_flux.front());
  EXPECT_GT(test::largest(fluxes.phonon_power), 0.0);
}

// A whole point of a deck, its field and its small signal included, stays on the device. The point
// ends at a step of 1e-9 V, which is 4e-8 of the current.
TEST_P(BeamElasticOn, APointHasTheCurrentOfTheHost) {
  if (GetParam().backend == Backend::kCpu) GTEST_SKIP() << "the host has the expected values";
  const Deck deck = test::small_film({{"scattering.roughness.height_nm", "0.6"},
                                      {"scattering.impurities", "true"},
                                      {"bias.points", "[[0.4, 0.3]]"},
                                      {"mesh.dh_ev", "0.05"},
                                      {"mesh.nkappa", "3"},
                                      {"run.tol_v", "1e-9"},
                                      {"small_signal.frequencies_hz", "[0.0]"}});
  SilentProgress silent;
  const auto numbers_on = [&](const Device& device) {
    return run_sweep(deck, {.devices = {device}}, silent)[0].numbers;
  };
  const auto host = numbers_on(find_device("cpu")), found = numbers_on(GetParam());
  for (const char* name : {"current_a_per_m", "transconductance_s_per_m"})
    EXPECT_NEAR(found.at(name) / host.at(name), 1.0, 1e-6) << name;
}

/// These acoustic phonons are so strong that electrons of all energies relax within a few nm.
const Settings kAcoustic{{"scattering.enabled", "[\"ac\"]"}, {"scattering.acoustic_ev", "20.0"}};
const Settings kSteep = joined(kAcoustic, {{"scattering.roughness.height_nm", "2.0"}});

/// Returns the mobility of the long film in cm²/Vs by Einstein's relation. The resistance of a cell
/// of H is that of the contacts and L/σ; two lengths give σ.
double mobility_of_films(BeamKernels& kernels, const Settings& settings, int refinement = 1) {
  FilmOptions options{.n_kappa = 12 * refinement, .drain_g = 0.5, .dh_ev = 0.0125 / refinement};
  const Film shorter(settings, options);
  options.tens_nm = 6;
  const Film longer(settings, options);
  const std::vector<double> low = shorter.current(shorter.solve(kernels, 1e-6).g, 15),
                            high = longer.current(longer.solve(kernels, 1e-6).g, 30);
  double sigma = 0.0, density = 0.0;
  for (std::size_t k = 0; k < low.size(); ++k)
    if (low[k] > 0.0 && high[k] > 0.0) sigma += 30.0 / (0.5 / high[k] - 0.5 / low[k]);
  const std::vector<double> sheet =
      beam_sheet_density(longer.geometry, std::vector<double>(longer.problem.size(), 1.0));
  for (int state = 0; state < 6; ++state)
    density += sheet[static_cast<std::size_t>(state) * longer.structure.nx + 30];
  return sigma / (density * longer.setup.kt_ev) * kMobilityUnit_cm2_v_s;
}

/// Returns the low-field mobility of the scheme `weno` in the same film.
double mobility_of_weno(const Settings& settings) {
  const Deck deck = Film::deck_of(joined(settings, {{"mesh.nw", "400"}}), {});
  const Structure column = column_structure(make_structure(deck), 0);
  const Subbands levels =
      solve_subbands(column, std::vector<double>(static_cast<std::size_t>(column.nz), 0.0));
  return low_field_mobility(deck, make_transport_problem(deck, column), levels, {-0.2})
             .mean_nm2_v_fs[0] *
         kMobilityUnit_cm2_v_s;
}

// A long film has the mobility of the linear response of the scheme `weno`, which has the same
// formulas on another grid. Cells of 12.5 meV and 12 cells of κ give 5 % less for acoustic phonons.
// This error cancels to 1.5 % when another process is added, which has one rate for each cell.
TEST_P(BeamElasticOn, ALongFilmHasTheMobilityOfTheLinearResponse) {
  const double found = mobility_of_films(*kernels_, kAcoustic),
               expected = mobility_of_weno(kAcoustic);
  EXPECT_NEAR(found / expected, 1.0, 5e-2);
  for (const Settings& settings : {kSteep, joined(kAcoustic, kImpurities)}) {
    const double ratio = mobility_of_weno(settings) / expected;
    EXPECT_LT(ratio, 0.7);
    EXPECT_NEAR(mobility_of_films(*kernels_, settings) / found, ratio, 1.5e-2 * ratio);
  }
}

// On cells of 6.25 meV and 24 cells of κ the mobility is that of the linear response to 1 %, and
// the error falls with the cells.
TEST_P(BeamElasticOn, TheMobilityOfALongFilmConverges) {
  if (std::getenv("QUASI_NIGHTLY") == nullptr) GTEST_SKIP() << "set QUASI_NIGHTLY=1 to run it";
  const double expected = mobility_of_weno(kAcoustic);
  const double coarse = mobility_of_films(*kernels_, kAcoustic) / expected - 1.0,
               fine = mobility_of_films(*kernels_, kAcoustic, 2) / expected - 1.0;
  EXPECT_LT(std::fabs(fine), 0.6 * std::fabs(coarse)) << coarse << ' ' << fine;
  EXPECT_LT(std::fabs(fine), 1e-2) << coarse << ' ' << fine;
}

// A (001) film has a fourfold axis, so that roughness is as strong along <110> as along <100>. The
// limit covers columns of 1 nm, which are not the same part of a mean free path in both.
TEST_P(BeamElasticOn, RoughnessIsEqualAlongBothAxesOfTheFilm) {
  const Setting along_110{"orientation", "\"110\""};
  EXPECT_NEAR(mobility_of_films(*kernels_, joined(kSteep, {along_110})) /
                  mobility_of_films(*kernels_, kSteep),
              1.0, 1e-3);
}

QUASI_ON_EVERY_DEVICE(BeamElasticOn);

}  // namespace
}  // namespace quasi::mosfet
