#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/mosfet/fixtures.hpp"
#include "tests/support/reference_data.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/kernels/subbands.hpp"
#include "workers/mosfet/kernels/transport_cpu.hpp"
#include "workers/mosfet/solver/equilibrium.hpp"
#include "workers/units/constants.hpp"
#include "workers/mosfet/solver/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

/// The flat 6 nm well as one column.
struct Well {
  TransportProblem problem;
  Subbands levels;
  std::vector<double> overlap;

  explicit Well(const std::vector<Setting>& settings) {
    const Deck deck = test::default_deck(33, 65, settings);
    const Structure device = make_structure(deck);
    problem = make_transport_problem(deck, device);
    problem.structure = column_structure(device, 0);
    levels = solve_subbands(problem.structure, std::vector<double>(65, 0.0));
    const std::size_t count = levels.energy_ev.size();
    overlap.resize(count * count);
    overlaps(problem, levels.psi.data(), overlap.data());
  }
  double energy(int state) const {
    const Structure& s = problem.structure;
    return levels.energy_ev[s.family_of[state / s.subbands] * s.subbands + state % s.subbands];
  }
  std::vector<double> maxwellian(double kt) const {
    std::vector<double> sums;
    for (int a = 0; a < problem.n_states(); ++a)
      for (int l = 0; l < problem.nw; ++l)
        sums.push_back(problem.root_mass[a / problem.structure.subbands] * problem.grid().kane(l) *
                       std::exp(-(energy(a) + problem.grid().w(l)) / kt));
    return sums;
  }
  // ∂Φ̃/∂t by scattering alone: 2π gain − λΦ̃.
  std::vector<double> change(const std::vector<double>& sums, std::vector<double>* loss) const {
    std::vector<double> gain(sums.size());
    loss->resize(sums.size());
    scattering_rates(problem, levels.energy_ev.data(), overlap.data(), sums.data(), gain.data(), loss->data());
    for (std::size_t k = 0; k < gain.size(); ++k) gain[k] = 2.0 * units::kPi * gain[k] - (*loss)[k] * sums[k];
    return gain;
  }
};

TEST(Scattering, PrefactorsAreTheGoldenRules) {
  const Well well({});
  const double coupling[] = {9.83798229e-4, 1.73270264e-5, 2.87722297e-5, 1.64436878e-3,
                             3.93961863e-6, 7.01854233e-5, 5.63862553e-5};
  const double occupation[] = {0, 1.69287684, 0.95653687, 0.10342567, 0.92133326, 0.19026490, 0.11365668};
  for (int k = 0; k < 7; ++k) {
    const ScatteringProcess& process = well.problem.processes[k];
    const double z = process.kind == ProcessKind::kF ? 2.0 : process.kind == ProcessKind::kElastic ? 0.5 : 1.0;
    EXPECT_NEAR(process.coupling / z / coupling[k], 1.0, 2e-5) << k;  // ρ is quoted to five digits.
    EXPECT_NEAR(process.occupation, occupation[k], 1e-7 * (1.0 + occupation[k])) << k;
  }
}

TEST(Scattering, OverlapsMatchTheReference) {
  QUASI_NEED_REFERENCE("device/overlap_flat_well_nz65.csv");
  const Well well({});
  const Structure& s = well.problem.structure;
  const int count = s.n_families() * s.subbands;
  for (const auto& row : test::read_csv(test::reference_dir() / "device/overlap_flat_well_nz65.csv")) {
    const int a = s.family_of[static_cast<int>(row[0])] * 6 + static_cast<int>(row[1]);
    const int b = s.family_of[static_cast<int>(row[2])] * 6 + static_cast<int>(row[3]);
    EXPECT_NEAR(well.overlap[a * count + b] / row[4], 1.0, 1e-9);
  }
}

// The loss rates of the continuous formula, which the scheme `paper` evaluates exactly.
TEST(Scattering, LossRatesMatchTheReference) {
  QUASI_NEED_REFERENCE("device/loss_rate_flat_well.csv");
  const Well well({{"scattering.scheme", "paper"}, {"mesh.nw", "1000"}, {"mesh.wmax_eV", "1.0"}});
  std::vector<double> loss;
  well.change(std::vector<double>(well.problem.n_states() * 1000, 0.0), &loss);
  int compared = 0;
  for (const auto& row : test::read_csv(test::reference_dir() / "device/loss_rate_flat_well.csv")) {
    const double node = row[0] / 1e-3 - 0.5;
    if (std::fabs(node - std::round(node)) > 1e-6 || node > 999) continue;
    const auto l = static_cast<std::size_t>(std::round(node));
    const int states[] = {0, 1, 12, 13};
    for (int k = 0; k < 4; ++k) EXPECT_NEAR(loss[states[k] * 1000 + l] / row[1 + k], 1.0, 1e-6);
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

TEST(Scattering, BalancedConservesParticlesOfAnyPdf) {
  for (const char* nw : {"17", "32", "57"}) {
    const Well well({{"mesh.nw", nw}, {"mesh.wmax_eV", "0.6"}});
    std::mt19937 random(2);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    std::vector<double> sums(static_cast<std::size_t>(well.problem.n_states()) * well.problem.nw), loss;
    for (double& value : sums) value = uniform(random);
    double total = 0.0, scale = 0.0;
    for (const double value : well.change(sums, &loss)) total += value;
    for (std::size_t k = 0; k < sums.size(); ++k) scale += loss[k] * sums[k];
    EXPECT_LT(std::fabs(total) / scale, 1e-13);
  }
}

TEST(Scattering, BalancedAnnihilatesTheMaxwellian) {
  for (const char* nw : {"17", "32", "57"}) {
    const Well well({{"mesh.nw", nw}, {"mesh.wmax_eV", "0.6"}});
    const std::vector<double> sums = well.maxwellian(well.problem.kt_ev);
    std::vector<double> loss;
    const std::vector<double> change = well.change(sums, &loss);
    for (std::size_t k = 0; k < sums.size(); ++k) EXPECT_LT(std::fabs(change[k]), 1e-12 * loss[k] * sums[k]);
  }
}

// The paper's interpolation leaves a residual that shrinks with Δw; it is kept for comparison.
TEST(Scattering, PapersSchemeAnnihilatesTheMaxwellianOnlyInTheLimit) {
  double residual[2];
  int k = 0;
  for (const char* nw : {"32", "256"}) {
    const Well well({{"scattering.scheme", "paper"}, {"mesh.nw", nw}, {"mesh.wmax_eV", "1.0"}});
    const std::vector<double> sums = well.maxwellian(well.problem.kt_ev);
    std::vector<double> loss;
    const std::vector<double> change = well.change(sums, &loss);
    double error = 0.0, scale = 0.0;
    for (std::size_t at = 0; at < sums.size(); ++at) {
      error += std::fabs(change[at]);
      scale += loss[at] * sums[at];
    }
    residual[k++] = error / scale;
  }
  EXPECT_GT(residual[0], 0.02);
  EXPECT_LT(residual[0], 0.3);
  EXPECT_LT(residual[1], 0.02);
}

// A 600 K start relaxes to the 300 K Maxwellian of the same density; relative entropy never rises.
TEST(Scattering, HotElectronsRelaxToTheLattice) {
  const Well well({{"mesh.nw", "32"}, {"mesh.wmax_eV", "0.5"}, {"mesh.subbands", "2"}});
  std::vector<double> sums = well.maxwellian(2.0 * well.problem.kt_ev);
  std::vector<double> target = well.maxwellian(well.problem.kt_ev), loss;
  const auto total = [](const std::vector<double>& v) {
    double sum = 0.0;
    for (const double value : v) sum += value;
    return sum;
  };
  const double start = total(sums), factor = start / total(target);
  for (double& value : target) value *= factor;
  const auto entropy = [&] {
    double sum = 0.0;
    for (std::size_t k = 0; k < sums.size(); ++k) sum += sums[k] * std::log(sums[k] / target[k]);
    return sum;
  };
  double before = entropy();
  const double dt = 8.0;
  for (int step = 0; step < 4000; ++step) {  // 32 ps of Heun's method; λΔt stays below 0.5.
    const std::vector<double> first = well.change(sums, &loss);
    std::vector<double> middle(sums);
    for (std::size_t k = 0; k < sums.size(); ++k) middle[k] += dt * first[k];
    const std::vector<double> second = well.change(middle, &loss);
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += 0.5 * dt * (first[k] + second[k]);
    if (step % 100 == 0) {
      const double now = entropy();
      EXPECT_LE(now, before + 1e-13 * start) << "step " << step;
      before = now;
    }
  }
  EXPECT_NEAR(total(sums) / start, 1.0, 1e-13);
  double distance = 0.0;
  for (std::size_t k = 0; k < sums.size(); ++k) distance += std::fabs(sums[k] - target[k]);
  EXPECT_LT(distance / start, 1e-8);
}

}  // namespace
}  // namespace quasi::mosfet
