#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/mosfet/fixtures.hpp"
#include "tests/support/reference_data.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/kernels/electrostatics/subbands.hpp"
#include "workers/mosfet/kernels/transport/transport_cpu.hpp"
#include "workers/mosfet/physics/statistics.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"
#include "workers/units/constants.hpp"

namespace quasi::mosfet {
namespace {

/// The flat 6 nm well as one column.
struct Well {
  TransportProblem problem;
  Subbands levels;
  std::vector<double> overlap, roughness;

  explicit Well(const std::vector<Setting>& settings) {
    const Deck deck = test::default_deck(33, 65, settings);
    const Structure device = make_structure(deck);
    problem = make_transport_problem(deck, device);
    problem.structure = column_structure(device, 0);
    levels = solve_subbands(problem.structure, std::vector<double>(65, 0.0));
    const std::size_t count = levels.energy_ev.size();
    overlap.resize(count * count);
    overlaps(problem, levels.psi.data(), overlap.data());
    if (problem.roughness_spectrum.empty()) return;
    roughness.resize(overlap.size());
    roughness_strengths(problem, levels.psi.data(), roughness.data());
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
  /// Φ̃ of Fermi–Dirac with pdf_scale 1, E_F in eV above the bottom of the well.
  std::vector<double> fermi_dirac(double fermi_ev) const {
    std::vector<double> sums;
    for (int a = 0; a < problem.n_states(); ++a)
      for (int l = 0; l < problem.nw; ++l)
        sums.push_back(full(a, l) * fermi_function((fermi_ev - energy(a) - problem.grid().w(l)) /
                                                   problem.kt_ev));
    return sums;
  }
  double full(int state, int l) const {
    return problem.full_filling(state / problem.structure.subbands, 1.0) * problem.grid().kane(l);
  }
  // ∂Φ̃/∂t by scattering alone: 2π gain − λΦ̃.
  std::vector<double> change(const std::vector<double>& sums, std::vector<double>* loss) const {
    std::vector<double> gain(sums.size());
    loss->resize(sums.size());
    scattering_rates(
        problem,
        {levels.energy_ev.data(), overlap.data(), roughness.empty() ? nullptr : roughness.data()},
        1.0, sums.data(), gain.data(), loss->data());
    for (std::size_t k = 0; k < gain.size(); ++k)
      gain[k] = 2.0 * units::kPi * gain[k] - (*loss)[k] * sums[k];
    return gain;
  }
};

TEST(Scattering, PrefactorsAreTheGoldenRules) {
  const Well well({});
  const double coupling[] = {9.83798229e-4, 1.73270264e-5, 2.87722297e-5, 1.64436878e-3,
                             3.93961863e-6, 7.01854233e-5, 5.63862553e-5};
  const double occupation[] = {0,          1.69287684, 0.95653687, 0.10342567,
                               0.92133326, 0.19026490, 0.11365668};
  for (int k = 0; k < 7; ++k) {
    const ScatteringProcess& process = well.problem.processes[k];
    const double z = process.kind == ProcessKind::kF         ? 2.0
                     : process.kind == ProcessKind::kElastic ? 0.5
                                                             : 1.0;
    EXPECT_NEAR(process.coupling / z / coupling[k], 1.0, 2e-5) << k;  // ρ is given with five digits
    EXPECT_NEAR(process.occupation, occupation[k], 1e-7 * (1.0 + occupation[k])) << k;
  }
}

TEST(Scattering, OverlapsMatchTheReference) {
  QUASI_NEED_REFERENCE("device/overlap_flat_well_nz65.csv");
  const Well well({});
  const Structure& s = well.problem.structure;
  const int count = s.n_families() * s.subbands;
  for (const auto& row :
       test::read_csv(test::reference_dir() / "device/overlap_flat_well_nz65.csv")) {
    const int a = s.family_of[static_cast<int>(row[0])] * 6 + static_cast<int>(row[1]);
    const int b = s.family_of[static_cast<int>(row[2])] * 6 + static_cast<int>(row[3]);
    EXPECT_NEAR(well.overlap[a * count + b] / row[4], 1.0, 1e-9);
  }
}

// The loss rates of the continuous formula, which the scheme `paper` evaluates exactly.
TEST(Scattering, LossRatesMatchTheReference) {
  QUASI_NEED_REFERENCE("device/loss_rate_flat_well.csv");
  const Well well({{"scattering.scheme", "paper"}, {"mesh.nw", "1000"}, {"mesh.wmax_ev", "1.0"}});
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

// Compares the branch-free sums of neighbouring nodes, which a GPU thread forms, with the links one
// by one. The gaps have either sign and lie within, at and beyond the grid, for every θ. The limit
// is 1e-14 of the largest sum, because only the order of factors differs.
TEST(Scattering, ARunOfNodesGetsWhatItsNodesGetOneByOne) {
  constexpr int kRun = 4, nw = 24;
  const EnergyGrid grid{.dw_ev = 0.004, .alpha_per_ev = 0.5, .kt_ev = 0.02585, .nw = nw};
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<double> filling(nw);
  for (double& value : filling) value = uniform(random);
  const auto at = [&](int n) {
    return n >= 0 && n < nw ? filling[static_cast<std::size_t>(n)] : 0.0;
  };
  const LinkEnds ends{.partner = filling.data()};
  for (int trial = 0; trial < 4000; ++trial) {
    const double gap =
        trial % 5 == 0 ? std::round(25.0 * uniform(random)) * grid.dw_ev : 0.11 * uniform(random);
    const auto link = [&](double gap_ev) {
      return make_link(grid, gap_ev, 1.0 + uniform(random), 0.3, trial % 2 == 0, 0.4);
    };
    const ScatteringLink as_low = link(gap), as_high = link(-gap + 0.03 * uniform(random));
    for (int first = 0; first < nw; first += kRun) {
      GainLoss run[kRun];
      add_run<kRun>(
          grid, {low_run(grid, as_low), high_run(grid, as_high)}, first,
          [&](int j) { return at(first + as_low.shift + j); },
          [&](int j) { return at(first - as_high.shift - 1 + j); }, run);
      for (int j = 0; j < kRun; ++j) {
        GainLoss one;
        add_links<false, false>(grid, as_low, as_high, node_at(first + j), ends, &one);
        EXPECT_NEAR(run[j].gain_low, one.gain_low, 4e-14) << gap << " " << first + j;
        EXPECT_NEAR(run[j].gain_high, one.gain_high, 4e-14) << gap << " " << first + j;
        EXPECT_NEAR(run[j].out, one.out, 4e-14) << gap << " " << first + j;
        EXPECT_NEAR(run[j].out_by_kane, one.out_by_kane, 4e-14) << gap << " " << first + j;
      }
    }
  }
}

/// Every process of the balanced scheme, with Maxwell and Fermi statistics.
const std::vector<std::vector<Setting>> kBalancedModels = {
    {},
    {{"scattering.roughness.height_nm", "0.3"}, {"scattering.impurities", "true"}},
    {{"statistics.kind", "fermi"}},
    {{"statistics.kind", "fermi"},
     {"scattering.roughness.height_nm", "0.3"},
     {"scattering.impurities", "true"}}};

Well well_on(const char* nw, const std::vector<Setting>& settings) {
  std::vector<Setting> all{{"mesh.nw", nw}, {"mesh.wmax_ev", "0.6"}};
  all.insert(all.end(), settings.begin(), settings.end());
  return Well(all);
}

// Cells range from slightly negative to overfilled, because blocking conserves particles for any f.
// The limit is 1e-13 of the rates. The room of an overfilled cell is a difference of 1e-9, which
// costs seven digits there.
TEST(Scattering, BalancedConservesParticlesOfAnyPdf) {
  for (const auto& settings : kBalancedModels)
    for (const char* nw : {"17", "32", "57"}) {
      const Well well = well_on(nw, settings);
      std::mt19937 random(2);
      std::uniform_real_distribution<double> uniform(-0.01, 1.02);
      std::vector<double> sums, loss;
      for (int a = 0; a < well.problem.n_states(); ++a)
        for (int l = 0; l < well.problem.nw; ++l) sums.push_back(uniform(random) * well.full(a, l));
      double total = 0.0, scale = 0.0;
      for (const double value : well.change(sums, &loss)) total += value;
      for (std::size_t k = 0; k < sums.size(); ++k) scale += loss[k] * std::fabs(sums[k]);
      EXPECT_LT(std::fabs(total) / scale, well.problem.pauli ? 1e-8 : 1e-13);
    }
}

TEST(Scattering, BalancedAnnihilatesTheMaxwellian) {
  for (const char* nw : {"17", "32", "57"}) {
    const Well well({{"mesh.nw", nw}, {"mesh.wmax_ev", "0.6"}});
    const std::vector<double> sums = well.maxwellian(well.problem.kt_ev);
    std::vector<double> loss;
    const std::vector<double> change = well.change(sums, &loss);
    for (std::size_t k = 0; k < sums.size(); ++k)
      EXPECT_LT(std::fabs(change[k]), 1e-12 * loss[k] * sums[k]);
  }
}

TEST(Scattering, BlockedConservesToRoundOffBelowFull) {
  const Well well = well_on("32", kBalancedModels[3]);
  std::mt19937 random(4);
  std::uniform_real_distribution<double> uniform(-0.01, 0.99);
  std::vector<double> sums, loss;
  for (int a = 0; a < well.problem.n_states(); ++a)
    for (int l = 0; l < 32; ++l) sums.push_back(uniform(random) * well.full(a, l));
  double total = 0.0, scale = 0.0;
  for (const double value : well.change(sums, &loss)) total += value;
  for (std::size_t k = 0; k < sums.size(); ++k) scale += loss[k] * std::fabs(sums[k]);
  EXPECT_LT(std::fabs(total) / scale, 1e-13);
}

// Fermi–Dirac at any level, from an empty to a strongly degenerate well, is annihilated pointwise,
// to 1e-12 of the rate of loss.
TEST(Scattering, BlockedAnnihilatesFermiDirac) {
  for (const std::size_t model : {2u, 3u})
    for (const double fermi_ev : {-0.3, 0.0, 0.1, 0.25})
      for (const char* nw : {"17", "32", "57"}) {
        const Well well = well_on(nw, kBalancedModels[model]);
        const std::vector<double> sums = well.fermi_dirac(fermi_ev);
        std::vector<double> loss;
        const std::vector<double> change = well.change(sums, &loss);
        for (std::size_t k = 0; k < sums.size(); ++k)
          ASSERT_LT(std::fabs(change[k]), 1e-12 * loss[k] * sums[k])
              << fermi_ev << ' ' << nw << ' ' << k;
      }
}

// In a nearly empty band blocking has no effect: the rates equal Maxwell's to the filling, 1e-9.
TEST(Scattering, BlockingFadesWithTheFilling) {
  const Well blocked = well_on("32", kBalancedModels[2]), plain = well_on("32", kBalancedModels[0]);
  std::vector<double> sums = plain.maxwellian(2.0 * plain.problem.kt_ev), loss, blocked_loss;
  double fullest = 0.0;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    const auto l = static_cast<int>(k % 32), a = static_cast<int>(k / 32);
    sums[k] *= 1e-10;
    fullest = std::max(fullest, sums[k] / plain.full(a, l));
  }
  const std::vector<double> expected = plain.change(sums, &loss),
                            found = blocked.change(sums, &blocked_loss);
  EXPECT_LT(fullest, 1e-9);
  for (std::size_t k = 0; k < sums.size(); ++k) {
    EXPECT_NEAR(blocked_loss[k] / loss[k], 1.0, 1e-8);
    EXPECT_LT(std::fabs(found[k] - expected[k]),
              1e-8 * loss[k] * sums[k] + 1e-8 * std::fabs(expected[k]));
  }
}

// A hot, blocked, crowded start relaxes to Fermi–Dirac of its own density.
TEST(Scattering, BlockedElectronsRelaxToFermiDirac) {
  const Well well({{"mesh.nw", "32"},
                   {"mesh.wmax_ev", "0.5"},
                   {"mesh.subbands", "2"},
                   {"statistics.kind", "fermi"}});
  std::vector<double> sums, loss;
  for (int a = 0; a < well.problem.n_states(); ++a)
    for (int l = 0; l < 32; ++l)
      sums.push_back(0.8 * well.full(a, l) *
                     std::exp(-(well.energy(a) + well.problem.grid().w(l)) / 0.12));
  const auto total = [](const std::vector<double>& v) {
    double sum = 0.0;
    for (const double value : v) sum += value;
    return sum;
  };
  const double start = total(sums), dt = 4.0;
  for (int step = 0; step < 4000; ++step) {
    const std::vector<double> first = well.change(sums, &loss);
    std::vector<double> middle(sums);
    for (std::size_t k = 0; k < sums.size(); ++k) middle[k] += dt * first[k];
    const std::vector<double> second = well.change(middle, &loss);
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += 0.5 * dt * (first[k] + second[k]);
  }
  EXPECT_NEAR(total(sums) / start, 1.0, 1e-12);
  double low = -1.0, high = 1.0;  // the Fermi level of this density
  while (high - low > 1e-14) {
    const double middle = 0.5 * (low + high);
    (total(well.fermi_dirac(middle)) < start ? low : high) = middle;
  }
  const std::vector<double> target = well.fermi_dirac(low);
  EXPECT_GT(target[0] / well.full(0, 0) + target[2 * 32 * 2] / well.full(4, 0),
            0.5);  // the well is crowded
  double distance = 0.0;
  for (std::size_t k = 0; k < sums.size(); ++k) distance += std::fabs(sums[k] - target[k]);
  EXPECT_LT(distance / start, 1e-7);
}

// The paper's interpolation leaves a residual that shrinks with Δw. It is kept for comparison.
TEST(Scattering, PapersSchemeAnnihilatesTheMaxwellianOnlyInTheLimit) {
  double residual[2];
  int k = 0;
  for (const char* nw : {"32", "256"}) {
    const Well well({{"scattering.scheme", "paper"}, {"mesh.nw", nw}, {"mesh.wmax_ev", "1.0"}});
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

// A 600 K start relaxes to the 300 K Maxwellian of equal density; relative entropy never rises.
TEST(Scattering, HotElectronsRelaxToTheLattice) {
  const Well well({{"mesh.nw", "32"}, {"mesh.wmax_ev", "0.5"}, {"mesh.subbands", "2"}});
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
  for (int step = 0; step < 4000; ++step) {  // 32 ps of Heun's method; λΔt stays below 0.5
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
