// Tests laws of the beam discretisation at fixed levels.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/mosfet/beam/beam_fixture.hpp"

namespace quasi::mosfet {
namespace {

using Beam = test::TestBeam;
using Options = test::BeamOptions;
using test::kAlpha_per_ev;
using test::kKt_ev;
using test::largest;
using test::profile_ev;
using test::random_values;

/// Landauer's current of electrons with both spins and two valleys over a top, integrated
/// numerically over the transverse momentum.
double landauer(double top_ev, double vds_v, bool fermi, double fermi_ev) {
  const double root_mass = 0.19 * kElectronMass_ev_fs2_nm2;
  const double factor = 2.0 * 2.0 * root_mass /
                        (units::kPi * units::kPi * kHbar_ev_fs * kHbar_ev_fs) /
                        std::sqrt(2.0 * root_mass);
  const auto inner = [&](double w, double level) {
    const double eta = (level - top_ev - w) / kKt_ev;
    return kKt_ev * (fermi ? fermi_integral_0(eta) : std::exp(eta));
  };
  constexpr int kPoints = 20000;
  const double step = std::sqrt(beam_gamma(1.2, kAlpha_per_ev)) / kPoints;
  double sum = 0.0;
  for (int k = 0; k < kPoints; ++k) {
    const double w = beam_least_energy((k + 0.5) * step, kAlpha_per_ev);
    sum += inner(w, fermi_ev) - inner(w, fermi_ev - vds_v);
  }
  return factor * sum * step;
}

double top_of_profile(double barrier_ev, double vds_v) {
  double top = -1.0;
  for (int k = 0; k <= 300000; ++k) top = std::max(top, profile_ev(k * 1e-4, barrier_ev, vds_v));
  return top;
}

// ϱ of a flat film equals that of the band for both signs of k_x, up to the closed top.
TEST(Beam, TheDensityOfAFlatBandIsExact) {
  const Beam beam({.barrier_ev = 0.0, .dh_ev = 0.00625, .n_kappa = 24});
  const std::vector<double> sheet =
      beam_sheet_density(beam.geometry, std::vector<double>(beam.problem.size(), 1.0));
  const double exact = 0.19 * kElectronMass_ev_fs2_nm2 * kKt_ev *
                       (1.0 + 2.0 * kAlpha_per_ev * kKt_ev) /
                       (units::kPi * kHbar_ev_fs * kHbar_ev_fs);
  for (const double value : sheet) EXPECT_NEAR(value / exact, 1.0, 1e-7);
}

// Without scattering any f(H) is steady, on any levels.
TEST(Beam, StreamingKeepsEveryFunctionOfTheTotalEnergy) {
  for (const BeamOrder order : {BeamOrder::kFirst, BeamOrder::kThird}) {
    Options o{.vds_v = 0.2, .scatters = false, .order = order};
    Beam beam(o);
    const std::vector<double> noise = random_values(beam.levels.edge_ev.size(), -0.05, 0.05, 3);
    for (std::size_t i = 0; i < noise.size(); ++i) beam.levels.edge_ev[i] += noise[i];
    beam.geometry = make_beam_geometry(beam.geometry.grid, beam.levels);
    const int nk = beam.geometry.grid.n_h, nj = beam.geometry.grid.n_kappa;
    beam.inflow.source = beam.inflow.drain = random_values(nk, 0.1, 1.0, 5);
    const BeamOperator problem(beam.geometry, beam.scattering, beam.inflow, order);
    std::vector<double> g(problem.size());
    for (std::size_t at = 0; at < g.size(); ++at) g[at] = beam.inflow.source[at / nj % nk];
    const double scale = beam.geometry.speed_factor[0] * largest(beam.geometry.area);
    EXPECT_LT(largest(problem.rate(g)), 1e-13 * scale);
  }
}

// The solution of all lines satisfies the equations of its order, with random gain and levels.
TEST(Beam, TheLineSolveIsExact) {
  for (const BeamOrder order : {BeamOrder::kFirst, BeamOrder::kThird})
    for (const bool scatters : {true, false}) {
      const Beam beam({.vds_v = 0.4, .scatters = scatters, .order = order});
      const std::size_t rows = beam.scattering.states().size();
      const std::vector<double> feed =
          scatters ? random_values(rows, 0.0, 1e-2, 23) : std::vector<double>{};
      const std::vector<double> g = beam.problem.solve_lines(feed, true);
      const std::vector<double> mean = beam.scattering.mean(g), gain = beam.scattering.gain(mean);
      std::vector<double> rate = beam.problem.rate(g);
      const int nj = beam.geometry.grid.n_kappa;
      const std::size_t branch = rate.size() / 2;
      for (std::size_t at = 0; at < rate.size() && scatters; ++at) {
        const std::size_t row = at % branch / nj;
        rate[at] += beam.geometry.volume[at % branch] * (feed[row] - gain[row]);
      }
      EXPECT_LT(largest(rate), 1e-13 * largest(beam.geometry.area) * largest(g));
      const std::vector<double> direct = beam.problem.line_mean(feed, true);
      for (std::size_t row = 0; row < rows; ++row)
        EXPECT_NEAR(direct[row], mean[row], 1e-13 * largest(mean));
    }
}

// With phonons a Maxwellian start is steady too, and the direct solver reaches it from any start.
TEST(Beam, TheSteadyStateWithoutBiasIsTheEquilibrium) {
  for (const double barrier_ev : {0.3, 0.1}) {
    const Beam beam({.barrier_ev = barrier_ev});
    const std::vector<double> ones(beam.problem.size(), 1.0);
    EXPECT_LT(largest(beam.problem.rate(ones)), 1e-13 * largest(beam.geometry.area));
    const BeamSolution found =
        solve_beam(beam.problem, beam.scattering, {1e-13, 200},
                   random_values(beam.scattering.states().size(), 0.5, 1.5, 7));
    ASSERT_TRUE(found.converged) << found.residual;
    const std::vector<double> sheet = beam_sheet_density(beam.geometry, found.g),
                              expected = beam_sheet_density(beam.geometry, ones);
    for (std::size_t i = 0; i < sheet.size(); ++i)
      EXPECT_NEAR(sheet[i] / expected[i], 1.0, 1e-10) << i;
    const BeamFluxes fluxes = beam_fluxes(beam.geometry, beam.scattering, beam.problem, found.g);
    EXPECT_LT(largest(fluxes.current), 1e-10 * landauer(0.0, 10.0, false, 0.0));
    const std::vector<double> mean = beam.scattering.mean(ones);
    EXPECT_LT(largest(beam.scattering.phonon_power(mean)),
              1e-12 * largest(beam.scattering.emission_power(mean)));
  }
}

// Fermi–Dirac's distribution is steady under blocked scattering, far into degeneracy, and phonons
// take no power from it.
TEST(Beam, BlockedScatteringKeepsFermisEquilibrium) {
  const Beam beam({.barrier_ev = 0.1, .fermi = true, .fermi_level_ev = 0.15});
  const int nk = beam.geometry.grid.n_h, nj = beam.geometry.grid.n_kappa;
  std::vector<double> g(beam.problem.size());
  for (std::size_t at = 0; at < g.size(); ++at) g[at] = beam.inflow.source[at / nj % nk];
  EXPECT_LT(largest(beam.problem.rate(g)), 1e-13 * largest(beam.geometry.area));
  const std::vector<double> mean = beam.scattering.mean(g);
  EXPECT_LT(largest(beam.scattering.phonon_power(mean)),
            1e-12 * largest(beam.scattering.emission_power(mean)));
  const BeamSolution found =
      solve_beam(beam.problem, beam.scattering, {1e-12, 300},
                 random_values(beam.scattering.states().size(), 0.0, 1.0, 19));
  ASSERT_TRUE(found.converged) << found.residual;
  const std::vector<double> sheet = beam_sheet_density(beam.geometry, found.g),
                            expected = beam_sheet_density(beam.geometry, g);
  for (std::size_t i = 0; i < sheet.size(); ++i)
    EXPECT_NEAR(sheet[i] / expected[i], 1.0, 1e-8) << i;
}

// The ballistic current of a fixed barrier is Landauer's, up to the parabola of its top.
TEST(Beam, TheBallisticCurrentIsExact) {
  for (const bool fermi : {false, true})
    for (const double vds_v : {0.05, 0.4})
      for (const auto& [dx_nm, bound] :
           {std::pair{1.0, 5e-3}, std::pair{0.5, 1.5e-3}, std::pair{0.25, 5e-4}}) {
        const Beam beam({.vds_v = vds_v,
                         .dx_nm = dx_nm,
                         .scatters = false,
                         .fermi = fermi,
                         .fermi_level_ev = fermi ? 0.1 : 0.0});
        const BeamSolution found = solve_beam(beam.problem, beam.scattering, {1e-10, 100});
        ASSERT_TRUE(found.converged) << found.residual;
        const double exact = landauer(top_of_profile(0.3, vds_v), vds_v, fermi, fermi ? 0.1 : 0.0);
        const std::vector<double> current =
            beam_fluxes(beam.geometry, beam.scattering, beam.problem, found.g).current;
        for (const double value : current)
          EXPECT_NEAR(value / exact, 1.0, bound) << fermi << ' ' << vds_v << ' ' << dx_nm;
      }
}

TEST(Beam, TheBallisticCurrentDoesNotDependOnTheMeshOfEnergyAndMomentum) {
  const auto current = [](double dh_ev, int n_kappa) {
    const Beam beam({.vds_v = 0.4, .dh_ev = dh_ev, .n_kappa = n_kappa, .scatters = false});
    const BeamSolution found = solve_beam(beam.problem, beam.scattering, {1e-11, 100});
    return beam_fluxes(beam.geometry, beam.scattering, beam.problem, found.g).current[15];
  };
  const double reference = current(0.0125, 12);
  EXPECT_NEAR(current(0.025, 12) / reference, 1.0, 1e-5);
  EXPECT_NEAR(current(0.00625, 12) / reference, 1.0, 1e-5);
  EXPECT_NEAR(current(0.0125, 24) / reference, 1.0, 1e-5);
}

TEST(Beam, TheSwingOfABarrierIsThermal) {
  const auto current = [](double barrier_ev) {
    const Beam beam({.barrier_ev = barrier_ev, .vds_v = 0.4, .scatters = false});
    return beam_fluxes(beam.geometry, beam.scattering, beam.problem,
                       solve_beam(beam.problem, beam.scattering, {1e-10, 100}).g)
        .current[15];
  };
  double before = current(0.05);
  for (const double barrier_ev : {0.1, 0.15, 0.2, 0.25, 0.3, 0.35}) {
    const double now = current(barrier_ev);
    const double fall_mv =
        1e3 * (top_of_profile(barrier_ev, 0.4) - top_of_profile(barrier_ev - 0.05, 0.4));
    EXPECT_NEAR(fall_mv / std::log10(before / now), 59.53, 0.4) << barrier_ev;
    before = now;
  }
}

// The energy qV_DS I appears completely in the phonons and in the contact fluxes.
TEST(Beam, EnergyIsConserved) {
  for (const double barrier_ev : {0.3, 0.05})
    for (const BeamOrder order : {BeamOrder::kFirst, BeamOrder::kThird}) {
      const Beam beam({.barrier_ev = barrier_ev, .vds_v = 0.4, .order = order});
      const BeamSolution found = solve_beam(beam.problem, beam.scattering, {1e-12, 300});
      ASSERT_TRUE(found.converged) << found.residual;
      const BeamFluxes fluxes = beam_fluxes(beam.geometry, beam.scattering, beam.problem, found.g);
      const auto [low, high] = std::minmax_element(fluxes.current.begin(), fluxes.current.end());
      EXPECT_LT((*high - *low) / *high, 1e-6);
      EXPECT_LT(fluxes.energy_defect, 1e-6 * 0.4 * *high);
      double power = 0.0;
      for (const double value : fluxes.phonon_power) power += value * beam.geometry.grid.dx_nm;
      EXPECT_GT(power, 0.01 * 0.4 * *high);  // the phonons take a part of it
    }
}

// Scattering moves electrons between states of a column and loses none.
TEST(Beam, ScatteringConservesElectronsInEveryColumn) {
  const Beam beam({.vds_v = 0.4});
  const std::vector<double> g = random_values(beam.problem.size(), 0.0, 1.0, 11);
  const std::vector<double> net = beam.scattering.net_number(beam.scattering.mean(g));
  const int nk = beam.geometry.grid.n_h;
  for (int i = 0; i < beam.geometry.grid.nx; ++i) {
    double sum = 0.0, scale = 0.0;
    for (int k = 0; k < nk; ++k) {
      sum += net[static_cast<std::size_t>(i) * nk + k];
      scale += std::fabs(net[static_cast<std::size_t>(i) * nk + k]);
    }
    EXPECT_LT(std::fabs(sum), 1e-13 * scale);
  }
}

// The change of ϱ in a column equals the difference of the fluxes through its two faces, for any g.
TEST(Beam, ParticlesAreBalancedInEveryColumn) {
  for (const BeamOrder order : {BeamOrder::kFirst, BeamOrder::kThird}) {
    const Beam beam({.vds_v = 0.4, .order = order});
    const BeamGrid& grid = beam.geometry.grid;
    const std::vector<double> g = random_values(beam.problem.size(), 0.0, 1.0, 13);
    const std::vector<double> rate = beam.problem.rate(g);
    const BeamFluxes fluxes = beam_fluxes(beam.geometry, beam.scattering, beam.problem, g);
    const std::size_t branch = rate.size() / 2;
    for (int i = 0; i < grid.nx; ++i) {
      double change = 0.0, scale = 0.0;
      for (int k = 0; k < grid.n_h; ++k)
        for (int j = 0; j < grid.n_kappa; ++j) {
          const std::size_t at = (static_cast<std::size_t>(i) * grid.n_h + k) * grid.n_kappa + j;
          const double factor = 2.0 * beam.geometry.density_factor[0] * grid.boltzmann(k);
          change += factor * (rate[at] + rate[branch + at]);
          scale += factor * (std::fabs(rate[at]) + std::fabs(rate[branch + at]));
        }
      change += (fluxes.current[i + 1] - fluxes.current[i]) / grid.dx_nm;
      EXPECT_LT(std::fabs(change), 1e-13 * scale) << i;
    }
  }
}

TEST(Beam, TheMirroredDeviceCarriesTheOppositeCurrent) {
  const auto currents = [](bool mirrored) {
    const Beam beam({.barrier_ev = 0.1, .vds_v = 0.4, .mirrored = mirrored});
    const BeamSolution found = solve_beam(beam.problem, beam.scattering, {1e-13, 400});
    EXPECT_TRUE(found.converged) << found.residual;
    return beam_fluxes(beam.geometry, beam.scattering, beam.problem, found.g).current;
  };
  const std::vector<double> here = currents(false), there = currents(true);
  for (std::size_t n = 0; n < here.size(); ++n)
    EXPECT_NEAR(there[here.size() - 1 - n] / -here[n], 1.0, 1e-10);
}

// At the first-order time step no occupation becomes negative.
TEST(Beam, FirstOrderMarchingStaysPositive) {
  const Beam beam({.vds_v = 0.4, .order = BeamOrder::kFirst});
  std::vector<double> g = random_values(beam.problem.size(), 0.0, 1.0, 17);
  for (std::size_t at = 0; at < g.size(); at += 3) g[at] = 0.0;
  const double dt_fs = beam.problem.largest_step_fs();
  const std::vector<double> rate = beam.problem.rate(g);
  const std::size_t branch = g.size() / 2;
  for (std::size_t at = 0; at < g.size(); ++at) {
    const double volume = beam.geometry.volume[at % branch];
    EXPECT_GE(volume * g[at] + dt_fs * rate[at], -1e-18) << at;
  }
}

// Explicit marching ends in the state of the direct solver.
TEST(Beam, MarchingEndsInTheSteadyState) {
  const Beam beam(
      {.barrier_ev = 0.1, .vds_v = 0.2, .dh_ev = 0.025, .n_kappa = 4, .order = BeamOrder::kFirst});
  const BeamSolution direct = solve_beam(beam.problem, beam.scattering, {1e-12, 300});
  ASSERT_TRUE(direct.converged);
  std::vector<double> g(beam.problem.size(), 1.0);
  const double dt_fs = 0.9 * beam.problem.largest_step_fs();
  const std::size_t branch = g.size() / 2;
  for (int step = 0; step * dt_fs < 4000.0; ++step) {
    const std::vector<double> rate = beam.problem.rate(g);
    for (std::size_t at = 0; at < g.size(); ++at)
      if (const double volume = beam.geometry.volume[at % branch]; volume > 0.0)
        g[at] += dt_fs * rate[at] / volume;
  }
  const auto current = [&](const std::vector<double>& values) {
    return beam_fluxes(beam.geometry, beam.scattering, beam.problem, values).current[15];
  };
  EXPECT_NEAR(current(g) / current(direct.g), 1.0, 1e-6);
}

// Shifting all energies and Fermi levels by a part of a cell puts the same device on another grid.
TEST(Beam, ARigidShiftOfTheEnergiesChangesLittle) {
  const auto current = [](double shift_ev, bool scatters) {
    const Beam beam({.vds_v = 0.4, .scatters = scatters, .shift_ev = shift_ev});
    return beam_fluxes(beam.geometry, beam.scattering, beam.problem,
                       solve_beam(beam.problem, beam.scattering, {1e-10, 300}).g)
        .current[15];
  };
  const double shift_ev = 0.37 * 0.0125;
  EXPECT_NEAR(current(shift_ev, false) / current(0.0, false), 1.0, 1e-4);
  EXPECT_NEAR(current(shift_ev, true) / current(0.0, true), 1.0, 5e-3);
}

}  // namespace
}  // namespace quasi::mosfet
