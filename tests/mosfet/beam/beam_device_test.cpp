// Tests that the kernels of the beam scheme agree on all devices, with several pairs and subbands.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "tests/mosfet/beam/beam_fixture.hpp"
#include "tests/support/every_device.hpp"
#include "workers/mosfet/kernels/beam/beam_kernels.hpp"
#include "workers/mosfet/kernels/beam/beam_rates.cuh"

namespace quasi::mosfet {
namespace {

/// The kinds of scattering of a test problem.
enum class Scattering { kNone, kPhonons, kElasticToo };

// Adds roughness and the relaxation of momentum by impurities, with random matrix elements.
void add_elastic(BeamProblem* p) {
  p->processes.push_back({.kind = ProcessKind::kRoughness, .coupling = 0.01});
  p->roughness = test::random_values(2 * p->rows(), 0.5, 2.0, 4);
  p->relaxation_fs = test::random_values(p->rows(), 1e-3, 2e-2, 5);
}

/// Three pairs of valleys with two subbands in a barrier, and all kinds of isotropic processes.
BeamProblem problem_of(Scattering scattering, bool fermi, BeamOrder order) {
  constexpr double kBarrier_ev = 0.15, kVds_v = 0.3, kFermi_ev = 0.05;
  BeamProblem p{.levels = {.valleys = {{0.98, 0.19, 0.19, 0.0},
                                       {0.19, 0.98, 0.19, 0.0},
                                       {0.19, 0.19, 0.98, 0.01}},
                           .subbands = 2,
                           .nx = 31},
                .level_of = {0, 1, 0, 1, 2, 3},
                .order = order};
  for (int state = 0; state < 6; ++state)
    for (int i = 0; i < p.levels.nx; ++i)
      p.levels.edge_ev.push_back(test::profile_ev(i, kBarrier_ev, kVds_v) + 0.06 * (state % 2) +
                                 (state >= 4 ? 0.01 : 0.0));
  p.grid =
      make_beam_grid({.dh_ev = 0.0125, .n_kappa = 11}, p.levels, 1.0, test::kAlpha_per_ev,
                     {.kt_ev = test::kKt_ev, .fermi_ev = fermi ? kFermi_ev : 0.0, .fermi = fermi});
  p.inflow = make_beam_inflow(p.grid, p.grid.shape.fermi_ev - kVds_v);
  if (scattering == Scattering::kNone) return p;
  const double unit = 2.0 * units::kPi * 0.19 * kElectronMass_ev_fs2_nm2;
  const auto phonon = [&](ProcessKind kind, double rate, double energy_ev) {
    return ScatteringProcess{.kind = kind,
                             .coupling = rate / unit,
                             .occupation = 1.0 / std::expm1(energy_ev / test::kKt_ev),
                             .energy_ev = energy_ev};
  };
  p.processes = {{.kind = ProcessKind::kElastic, .coupling = 0.5 * 5e-3 / unit},
                 phonon(ProcessKind::kG, 1e-2, 0.0612),
                 phonon(ProcessKind::kF, 6e-3, 0.019)};
  p.overlap = test::random_values(16 * static_cast<std::size_t>(p.levels.nx), 0.2, 1.0, 31);
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < a; ++b)
      for (int i = 0; i < p.levels.nx; ++i)
        p.overlap[(a * 4 + b) * p.levels.nx + i] = p.overlap[(b * 4 + a) * p.levels.nx + i];
  if (fermi) p.filling = test::random_values(p.rows(), 0.0, 0.9, 37);
  if (scattering == Scattering::kElasticToo) add_elastic(&p);
  return p;
}

void expect_close(const std::vector<double>& found, const std::vector<double>& expected,
                  double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  const double scale = test::largest(expected);
  for (std::size_t k = 0; k < found.size(); ++k)
    ASSERT_NEAR(found[k], expected[k], tolerance * scale) << k;
}

double largest_error(const std::vector<double>& found, const std::vector<double>& expected) {
  double error = 0.0;
  for (std::size_t k = 0; k < found.size(); ++k)
    error = std::max(error, std::fabs(found[k] - expected[k]));
  return error / test::largest(expected);
}

/// Holds the tables of rates as a device has them, in the memory of the host.
struct RowTables {
  RowTables(const BeamProblem& p, const BeamGeometry& geometry, const BeamScattering& scattering)
      : problem(p),
        lists(
            make_beam_links(p.grid, geometry.n_states, p.levels.subbands, p.processes, p.level_of),
            geometry.n_states, p.levels.subbands),
        states(scattering.states()),
        loss(p.rows()),
        source(p.filling.size()) {
    for (int k = 0; k < p.grid.n_h; ++k) {
      inverse.push_back(1.0 / p.grid.cell(k, 0).full_ev);
      boltzmann.push_back(p.grid.boltzmann(k));
    }
    tables = {.n_states = geometry.n_states, .nx = p.grid.nx, .nk = p.grid.n_h};
    tables.dh_ev = p.grid.dh_ev;
    tables.h_inverse = inverse.data();
    tables.boltzmann = boltzmann.data();
    tables.overlap = problem.overlap.data();
    tables.density_factor = geometry.density_factor.data();
    tables.filling = p.filling.empty() ? nullptr : problem.filling.data();
    tables.roughness = problem.roughness.data();
    tables.relaxation = problem.relaxation_fs.data();
    tables.ends = lists.ends.data();
    tables.first_low = lists.first_low.data();
    tables.first_high = lists.first_high.data();
    tables.states = states.data();
    tables.loss = loss.data();
    tables.source = p.filling.empty() ? nullptr : source.data();
  }

  const BeamProblem& problem;
  cuda::BeamEndLists lists;
  std::vector<double> states, loss, source, inverse, boltzmann;
  cuda::BeamTables tables;
};

class BeamDevices : public test::OnEveryDevice {};

/// A test problem with its operators on the host.
struct HostProblem {
  explicit HostProblem(const BeamProblem& p)
      : geometry(make_beam_geometry(p.grid, p.levels)),
        scattering(geometry, p.levels, p.processes, p.overlap, p.level_of,
                   {p.filling, p.roughness, p.relaxation_fs}),
        inflow(p.inflow),
        transport(geometry, scattering, inflow, p.order) {}
  BeamGeometry geometry;
  BeamScattering scattering;
  BeamInflow inflow;
  BeamOperator transport;
};

/// The largest deviations of the results of a device from those of the host, over the largest value
/// of each result.
using Deviations = std::map<std::string, double>;

void compare(BeamKernels& kernels, const BeamMean& found, const HostProblem& host,
             const BeamSolution& expected, Deviations* largest) {
  const BeamFluxes own = kernels.fluxes(),
                   fluxes = beam_fluxes(host.geometry, host.scattering, host.transport, expected.g);
  const auto add = [&](const char* name, const std::vector<double>& a,
                       const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size()) << name;
    const double deviation = b.empty() ? 0.0 : largest_error(a, b);
    (*largest)[name] = std::max((*largest)[name], deviation);
  };
  add("mean", found.mean, expected.mean);
  add("distribution", kernels.distribution(), expected.g);
  add("sheet", kernels.sheet_density(), fluxes.sheet_nm2);
  add("current", own.current, fluxes.current);
  add("energy_flux", own.energy_flux, fluxes.energy_flux);
  if (test::largest(fluxes.phonon_power) > 0.0)
    add("phonon_power", own.phonon_power, fluxes.phonon_power);
}

// Calls action(problem) for all kinds of scattering, both statistics and both orders.
template <typename Action>
void for_each_problem(const Action& action) {
  for (const Scattering kind : {Scattering::kPhonons, Scattering::kElasticToo, Scattering::kNone})
    for (const bool fermi : {false, true})
      for (const BeamOrder order : {BeamOrder::kFirst, BeamOrder::kThird}) {
        SCOPED_TRACE(testing::Message()
                     << static_cast<int>(kind) << fermi << (order == BeamOrder::kFirst));
        action(problem_of(kind, fermi, order));
      }
}

// One application of all operators to random means: volumes, areas, rates, gain, the solution of
// all lines, and the sums that give densities, currents and powers. Both sides add the same
// products in another order, so that they differ by rounding alone.
TEST_P(BeamDevices, AgreeWithTheOperatorsOfTheHost) {
  constexpr double kTolerance = 1e-12;
  Deviations largest;
  const auto kernels = make_beam_kernels(GetParam());
  for_each_problem([&](const BeamProblem& p) {
    const HostProblem host(p);
    const std::vector<double> start = test::random_values(p.rows(), 0.1, 0.9, 11);
    kernels->load(p);
    const BeamMean found = kernels->solve(1e-13, 0, start);
    compare(*kernels, found, host,
            solve_beam(host.transport, host.scattering, {1e-13, 0, kernels->norm()}, start),
            &largest);
  });
  for (const auto& [name, deviation] : largest) {
    EXPECT_LT(deviation, kTolerance) << name;
    RecordProperty(name, testing::PrintToString(deviation));
  }
}

// GMRES ends at a residual of 1e-13, and this problem enlarges a residual some hundred times. On an
// H200 distributions differ by up to 1.2e-11 of their largest value. Densities and currents weight
// them with e^{−H/kT}, up to e^12 here, which does not favour the largest value. They differ by
// 1.1e-10 of the largest one.
TEST_P(BeamDevices, AgreeWithTheSolutionsOfTheHost) {
  constexpr double kTolerance = 5e-11, kSumTolerance = 1e-9;
  Deviations largest;
  const auto kernels = make_beam_kernels(GetParam());
  for_each_problem([&](const BeamProblem& p) {
    // The CPU has the operators of the host, so that one order is enough there.
    if (GetParam().backend == Backend::kCpu && p.order == BeamOrder::kFirst) return;
    const HostProblem host(p);
    const BeamSolution expected =
        solve_beam(host.transport, host.scattering, {1e-13, 200, kernels->norm()});
    kernels->load(p);
    const BeamMean found = kernels->solve(1e-13, 200, {});
    EXPECT_EQ(found.converged, expected.converged);
    EXPECT_NEAR(found.sweeps, expected.sweeps, 2);
    compare(*kernels, found, host, expected, &largest);
  });
  for (const auto& [name, deviation] : largest) {
    EXPECT_LT(deviation, name == "mean" || name == "distribution" ? kTolerance : kSumTolerance)
        << name;
    RecordProperty(name, testing::PrintToString(deviation));
  }
}

// The gain and the loss of every cell come from sums over partners, and net_number() visits the
// links one by one. Newton's linearisation is exact at its own filling. Both add the same products
// in another order.
TEST(BeamScatteringSums, GainAndLossMoveTheNumbersOfTheLinks) {
  for (const bool fermi : {false, true}) {
    SCOPED_TRACE(fermi);
    BeamProblem p = problem_of(Scattering::kPhonons, fermi, BeamOrder::kThird);
    p.processes.push_back({.kind = ProcessKind::kRoughness, .coupling = 0.01});
    const BeamGeometry geometry = make_beam_geometry(p.grid, p.levels);
    const std::size_t nk = static_cast<std::size_t>(p.grid.n_h), cells = 6 * 31 * nk;
    const std::vector<double> mean = test::random_values(cells, 0.1, 0.9, 3);
    BeamCellTables tables{.roughness = test::random_values(2 * cells, 0.5, 2.0, 4)};
    for (std::size_t cell = 0; fermi && cell < cells; ++cell)
      tables.filling.push_back(mean[cell] * p.grid.boltzmann(static_cast<int>(cell % nk)));
    const BeamScattering scattering(geometry, p.levels, p.processes, p.overlap, p.level_of, tables);
    std::vector<double> moved = scattering.gain(mean);
    for (std::size_t cell = 0; cell < cells; ++cell) {
      moved[cell] -= scattering.loss()[cell] * mean[cell];
      if (fermi) moved[cell] += scattering.source()[cell];
      moved[cell] *= geometry.density_factor[cell / (31 * nk)] * scattering.states()[cell] *
                     p.grid.boltzmann(static_cast<int>(cell % nk));
    }
    expect_close(moved, scattering.net_number(mean), 1e-13);
  }
}

// The bodies of CUDA devices sum the links of every row one by one. They run on the host here.
TEST(BeamRates, OfRowsAreThoseOfTheOperatorsOfTheHost) {
  for (const bool fermi : {false, true}) {
    SCOPED_TRACE(fermi);
    const BeamProblem p = problem_of(Scattering::kElasticToo, fermi, BeamOrder::kThird);
    const BeamGeometry geometry = make_beam_geometry(p.grid, p.levels);
    const BeamScattering scattering(geometry, p.levels, p.processes, p.overlap, p.level_of,
                                    {p.filling, p.roughness, p.relaxation_fs});
    const RowTables rows(p, geometry, scattering);
    const std::vector<double> mean = test::random_values(p.rows(), 0.1, 0.9, 3);
    const std::size_t column = static_cast<std::size_t>(p.grid.nx) * p.grid.n_h;
    std::vector<double> weight(p.rows()), weighted(p.rows()), gain(p.rows()),
        power(p.processes.size() * static_cast<std::size_t>(p.grid.nx));
    for (std::size_t row = 0; row < p.rows(); ++row) {
      weight[row] = geometry.states_factor[row / column] * scattering.states()[row];
      weighted[row] = weight[row] * mean[row];
    }
    for (std::size_t row = 0; row < p.rows(); ++row) {
      const auto number = static_cast<std::int64_t>(row);
      cuda::beam_loss_of_row(rows.tables, weight.data(), number);
      gain[row] = cuda::beam_gain_of_row(rows.tables, weighted.data(), mean.data(), number);
      for (std::size_t process = 0; process < p.processes.size(); ++process)
        power[process * p.grid.nx + row / p.grid.n_h % p.grid.nx] += cuda::beam_power_of_row(
            rows.tables, weight.data(), mean.data(), static_cast<int>(process), number);
    }
    std::vector<double> loss = scattering.loss(), expected = scattering.gain(mean);
    for (std::size_t row = 0; row < p.rows(); ++row)
      if (!(scattering.states()[row] > 0.0)) loss[row] = expected[row] = 0.0;
    expect_close(rows.loss, loss, 1e-13);
    expect_close(gain, expected, 1e-13);
    expect_close(power, scattering.phonon_power(mean), 1e-13);
    if (fermi) expect_close(rows.source, scattering.source(), 1e-13);
  }
}

// In the norm of electrons a residual of 1e-12 leaves errors of fluxes below 1e-9. In the norm of
// occupations a residual of 1e-11 leaves 2e-5 in this problem, and needs more products.
TEST(BeamNorms, AResidualInElectronsBoundsTheFluxes) {
  const BeamProblem p = problem_of(Scattering::kPhonons, false, BeamOrder::kThird);
  const BeamGeometry geometry = make_beam_geometry(p.grid, p.levels);
  const BeamScattering scattering(geometry, p.levels, p.processes, p.overlap, p.level_of);
  const BeamOperator problem(geometry, scattering, p.inflow, p.order);
  const auto fluxes = [&](const BeamGoal& goal, int* sweeps) {
    const BeamSolution found = solve_beam(problem, scattering, goal);
    EXPECT_TRUE(found.converged) << found.residual;
    *sweeps = found.sweeps;
    return beam_fluxes(geometry, scattering, problem, found.g);
  };
  int sweeps = 0, sweeps_in_occupation = 0;
  const BeamFluxes expected = fluxes({1e-14, 400, BeamNorm::kElectrons}, &sweeps),
                   found = fluxes({1e-12, 400, BeamNorm::kElectrons}, &sweeps),
                   other = fluxes({1e-11, 400, BeamNorm::kOccupation}, &sweeps_in_occupation);
  EXPECT_LT(largest_error(found.current, expected.current), 1e-9);
  EXPECT_LT(largest_error(found.energy_flux, expected.energy_flux), 1e-9);
  EXPECT_LT(largest_error(found.phonon_power, expected.phonon_power), 1e-9);
  EXPECT_GT(largest_error(other.current, expected.current), 1e-6);
  EXPECT_LE(sweeps, sweeps_in_occupation);
}

// Equal calls give equal bits, also after another problem with other sizes.
TEST_P(BeamDevices, RepeatTheirBits) {
  const auto kernels = make_beam_kernels(GetParam());
  const BeamProblem p = problem_of(Scattering::kPhonons, false, BeamOrder::kThird);
  kernels->load(p);
  const BeamMean first = kernels->solve(1e-12, 200, {});
  const std::vector<double> current = kernels->fluxes().current;
  kernels->load(problem_of(Scattering::kNone, true, BeamOrder::kFirst));
  kernels->solve(1e-12, 200, {});
  kernels->load(p);
  EXPECT_EQ(kernels->solve(1e-12, 200, {}).mean, first.mean);
  EXPECT_EQ(kernels->fluxes().current, current);
  // A start at the solution needs one product to see that it is one.
  EXPECT_LE(kernels->solve(1e-10, 200, first.mean).sweeps, 4);
}

QUASI_ON_EVERY_DEVICE(BeamDevices);

}  // namespace
}  // namespace quasi::mosfet
