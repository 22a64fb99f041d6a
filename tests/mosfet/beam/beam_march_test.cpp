// Tests laws of the beam scheme in time at given levels: sweeps of cells in H and steps along x.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/mosfet/beam/beam_fixture.hpp"
#include "workers/mosfet/kernels/beam/march/beam_cell_table.hpp"
#include "workers/mosfet/kernels/beam/march/beam_march.hpp"
#include "workers/mosfet/kernels/beam/march/level_sweep.hpp"

namespace quasi::mosfet {
namespace {

using Beam = test::TestBeam;
using Options = test::BeamOptions;
using test::kKt_ev;
using test::largest;
using test::random_values;

PlacedLevels place(const BeamGrid& grid, const BeamCellTable& table, const BeamLevels& levels) {
  PlacedLevels placed{.levels = levels, .geometry = {}, .edges = {}};
  placed.geometry = make_beam_geometry(grid, levels, table, &placed.edges);
  return placed;
}

// Cells of the table equal the integrals. A cubic through points of ΔH/128, twenty points away
// from a root d^{3/2}, has an error below 1e-6. Fully open and closed cells are equal to the bit.
TEST(BeamMarch, CellsOfTheTableAreThoseOfTheIntegrals) {
  for (const bool fermi : {false, true}) {
    const Beam beam({.vds_v = 0.2, .fermi = fermi});
    const BeamCellTable table(beam.geometry.grid);
    const PlacedLevels placed = place(beam.geometry.grid, table, beam.levels);
    for (std::size_t at = 0; at < beam.geometry.area.size(); ++at) {
      const double area = beam.geometry.area[at];
      const double full = beam.geometry.full[at % beam.geometry.full.size()];
      ASSERT_NEAR(placed.geometry.area[at], area, area == full ? 0.0 : 2e-6 * area) << at;
    }
    for (std::size_t at = 0; at < beam.geometry.volume.size(); ++at)
      ASSERT_NEAR(placed.geometry.volume[at], beam.geometry.volume[at],
                  2e-6 * beam.geometry.volume[at])
          << at;
  }
}

/// Moves the levels of a device in steps to the end of `path`.
struct Moving {
  explicit Moving(const Options& o)
      : beam(o), table(beam.geometry.grid), placed(place(beam.geometry.grid, table, beam.levels)) {}

  void move(const std::vector<double>& by_ev, std::vector<double>* g) {
    BeamLevels levels = placed.levels;
    for (std::size_t i = 0; i < levels.edge_ev.size(); ++i) levels.edge_ev[i] += by_ev[i];
    PlacedLevels next = place(beam.geometry.grid, table, levels);
    sweep_levels(placed, next, g);
    placed = std::move(next);
  }

  Beam beam;
  BeamCellTable table;
  PlacedLevels placed;
};

// The levels rise by δ together in 100 steps. A Maxwellian keeps its density to rounding, and
// f e^{−δ/kT} stays. g grows by e^{δ/kT} in every cell but those near the closed top, which
// holds e^{−23} of the electrons.
TEST(BeamMarch, AMaxwellianRisesWithItsLevels) {
  Moving moving({.vds_v = 0.2, .scatters = false});
  std::vector<double> g(moving.beam.problem.size(), 1.0);
  const std::vector<double> before = beam_sheet_density(moving.placed.geometry, g);
  constexpr double kRise_ev = 0.05;
  const std::vector<double> step(moving.beam.levels.edge_ev.size(), kRise_ev / 100);
  for (int n = 0; n < 100; ++n) moving.move(step, &g);
  const std::vector<double> after = beam_sheet_density(moving.placed.geometry, g);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i] / before[i], 1.0, 1e-12);
  const BeamGrid& grid = moving.beam.geometry.grid;
  const int top = grid.n_h - static_cast<int>(0.3 / grid.dh_ev);
  for (std::size_t at = 0; at < g.size(); ++at) {
    const std::size_t cell = at % (g.size() / 2);
    if (static_cast<int>(cell / grid.n_kappa % grid.n_h) >= top) continue;
    if (!(moving.placed.geometry.volume[cell] > 0.0)) continue;
    ASSERT_NEAR(g[at] * std::exp(-kRise_ev / kKt_ev), 1.0, 2e-3) << at;
  }
}

// Any levels and any g ≥ 0: every line keeps its electrons to rounding, closed cells are empty
// and no g is negative, also where whole lines close.
TEST(BeamMarch, ASweepKeepsElectronsAndSigns) {
  Moving moving({.barrier_ev = 0.2, .vds_v = 0.2});
  std::vector<double> g = random_values(moving.beam.problem.size(), 0.0, 2.0, 31);
  for (std::size_t at = 0; at < g.size(); at += 3) g[at] = 0.0;
  const double half_cell = 0.5 * moving.beam.geometry.grid.dh_ev;
  for (int n = 0; n < 12; ++n) {
    const std::vector<double> before = beam_sheet_density(moving.placed.geometry, g);
    moving.move(random_values(moving.beam.levels.edge_ev.size(), n % 2 == 0 ? -half_cell : 0.0,
                              n % 2 == 0 ? 0.0 : half_cell, 40 + n),
                &g);
    const std::vector<double> after = beam_sheet_density(moving.placed.geometry, g);
    for (std::size_t i = 0; i < before.size(); ++i)
      EXPECT_NEAR(after[i] / before[i], 1.0, 1e-12) << n << ' ' << i;
    EXPECT_GE(*std::min_element(g.begin(), g.end()), 0.0);
    for (std::size_t at = 0; at < g.size(); ++at) {
      if (moving.placed.geometry.volume[at % (g.size() / 2)] > 0.0) continue;
      ASSERT_EQ(g[at], 0.0);
    }
  }
}

// Without scattering H of an electron in a film whose level rises everywhere grows by the rise: a
// distribution over H moves with the level. Its mean over H − ε stays to the error of the flux
// between two cells, which is of second order in ΔH. The error is a tenth of the rise on coarse
// cells, because g of this narrow distribution changes by e^½ from cell to cell.
TEST(BeamMarch, KineticEnergyStaysWhenALevelRises) {
  const auto drift = [](double dh_ev) {
    Moving moving({.barrier_ev = 0.0, .dh_ev = dh_ev, .scatters = false});
    const BeamGrid& grid = moving.beam.geometry.grid;
    const std::size_t branch = moving.beam.problem.size() / 2;
    std::vector<double> g(2 * branch);
    for (std::size_t at = 0; at < g.size(); ++at) {
      const double w = grid.centre_ev(static_cast<int>(at / grid.n_kappa % grid.n_h));
      g[at] = std::exp(-std::pow((w - 0.2) / 0.05, 2)) /
              grid.boltzmann(static_cast<int>(at / grid.n_kappa % grid.n_h));
    }
    const auto mean_w = [&] {
      double sum = 0.0, energy = 0.0;
      for (std::size_t at = 0; at < branch; ++at) {
        const int k = static_cast<int>(at / grid.n_kappa % grid.n_h);
        const double number = moving.placed.geometry.volume[at] * g[at] * grid.boltzmann(k);
        sum += number;
        energy += number * (grid.centre_ev(k) - moving.placed.levels.edge_ev[0]);
      }
      return energy / sum;
    };
    const double before = mean_w();
    const std::vector<double> step(moving.beam.levels.edge_ev.size(), 0.1 / 64);
    for (int n = 0; n < 64; ++n) moving.move(step, &g);
    return std::fabs(mean_w() - before);
  };
  const double coarse = drift(0.0125), fine = drift(0.00625);
  EXPECT_LT(coarse, 1.2e-2);
  EXPECT_LT(fine, 0.35 * coarse);
}

// Every column changes by what passes its faces, and with scattering between cells of H too. The
// electrons of a column are compared with the largest column.
TEST(BeamMarch, ParticlesAreBalancedInEveryColumn) {
  for (const bool scatters : {true, false}) {
    const Beam beam({.barrier_ev = 0.1, .vds_v = 0.2, .scatters = scatters});
    std::vector<double> g = random_values(beam.problem.size(), 0.5, 1.5, 11);
    for (std::size_t at = 0; at < g.size(); ++at)
      if (beam.geometry.volume[at % (g.size() / 2)] == 0.0) g[at] = 0.0;
    const std::vector<double> before = beam_sheet_density(beam.geometry, g);
    const double dt_fs = 0.9 * beam.problem.largest_step_fs();
    const BeamMarched marched = march_beam(beam.problem, beam.scattering, dt_fs, 3, &g);
    const std::vector<double> after = beam_sheet_density(beam.geometry, g);
    const BeamGrid& grid = beam.geometry.grid;
    const auto passed = [&](int n) {
      const auto first = marched.passed.begin() + static_cast<std::ptrdiff_t>(n) * grid.n_h;
      return std::accumulate(first, first + grid.n_h, 0.0);
    };
    for (int i = 0; i < grid.nx; ++i)
      EXPECT_NEAR(after[i] - before[i], (passed(i) - passed(i + 1)) / grid.dx_nm,
                  1e-12 * largest(before))
          << i;
  }
}

// At first order no g ≥ 0 becomes negative at the largest step. At third order lines that would
// fall below zero take first order.
TEST(BeamMarch, OccupationsStayPositive) {
  for (const BeamOrder order : {BeamOrder::kFirst, BeamOrder::kThird}) {
    const Beam beam({.barrier_ev = 0.1, .vds_v = 0.2, .order = order});
    std::vector<double> g = random_values(beam.problem.size(), 0.0, 1.0, 17);
    for (std::size_t at = 0; at < g.size(); at += 2) g[at] = 0.0;
    const BeamMarched marched =
        march_beam(beam.problem, beam.scattering, beam.problem.largest_step_fs(), 4, &g);
    EXPECT_GE(*std::min_element(g.begin(), g.end()), 0.0);
    EXPECT_GE(marched.least, 0.0);
    EXPECT_EQ(marched.first_order_lines > 0, order == BeamOrder::kThird);
  }
}

// A short step must change g by Δt rate()/V, where rate() is that of the operator.
TEST(BeamMarch, AStepFollowsTheEquations) {
  const Beam beam({.barrier_ev = 0.1, .vds_v = 0.2});
  const std::vector<double> before = random_values(beam.problem.size(), 0.9, 1.1, 19);
  std::vector<double> g(before);
  const double dt_fs = 1e-7;
  march_beam(beam.problem, beam.scattering, dt_fs, 1, &g);
  const std::vector<double> rate = beam.problem.rate(before);
  const std::size_t branch = g.size() / 2;
  for (std::size_t at = 0; at < g.size(); ++at) {
    const double volume = beam.geometry.volume[at % branch];
    if (!(volume > 0.0)) continue;
    // The difference is of second order in Δt, and the largest rate is near 1/fs.
    ASSERT_NEAR((g[at] - before[at]) / dt_fs, rate[at] / volume, 1e-6) << at;
  }
}

// The end of a long march is the steady state of the direct solver.
TEST(BeamMarch, ALongMarchEndsInTheSteadyState) {
  const Beam beam({.barrier_ev = 0.1, .vds_v = 0.2, .dh_ev = 0.025, .n_kappa = 4});
  const BeamSolution steady = solve_beam(beam.problem, beam.scattering, {1e-12, 300});
  ASSERT_TRUE(steady.converged);
  std::vector<double> g(beam.problem.size(), 1.0);
  march_beam(beam.problem, beam.scattering, 0.7 * beam.problem.largest_step_fs(), 5000, &g);
  const std::vector<double> found = beam_sheet_density(beam.geometry, g),
                            expected = beam_sheet_density(beam.geometry, steady.g);
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i] / expected[i], 1.0, 1e-9) << i;
}

}  // namespace
}  // namespace quasi::mosfet
