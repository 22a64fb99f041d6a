#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/mosfet/fixtures.hpp"
#include "tests/oracle/mosfet/transport_step.hpp"
#include "tests/support/every_device.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/kernels/electrostatics/subbands.hpp"
#include "workers/mosfet/kernels/transport/transport_cpu.hpp"
#include "workers/mosfet/physics/kane_band.hpp"
#include "workers/mosfet/physics/weno5.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

/// A small device with uneven levels, a random even pdf, and one step of it on a device.
struct Case {
  Structure s;
  TransportProblem problem;
  PointBoundary boundary;
  PointState state;
};

Case random_case(const std::vector<Setting>& settings, unsigned seed) {
  std::vector<Setting> all{
      {"mesh.subbands", "2"}, {"mesh.nw", "21"}, {"mesh.nphi", "16"}, {"mesh.wmax_ev", "0.5"}};
  all.insert(all.end(), settings.begin(), settings.end());
  const Deck deck = test::default_deck(33, 17, all);
  Case c;
  c.s = make_structure(deck);
  c.problem = make_transport_problem(deck, c.s);
  c.problem.frozen_field = true;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0.1, 1.0);
  const auto nodes = static_cast<std::size_t>(c.s.nx) * c.s.nz;
  c.boundary.fixed_v.assign(nodes, 0.0);
  c.boundary.pdf_scale = 0.3;
  for (int k = 0; k < c.problem.n_states() * c.problem.nw; ++k) {
    c.boundary.inflow_source.push_back(uniform(random));
    c.boundary.inflow_drain.push_back(uniform(random));
  }
  c.state.potential_v.assign(nodes, 0.0);
  for (int i = 0; i < c.s.nx; ++i)
    for (int j = 0; j < c.s.nz; ++j)
      c.state.potential_v[static_cast<std::size_t>(i) * c.s.nz + j] =
          0.05 * std::sin(0.4 * i) + 0.02 * std::cos(0.9 * j + 0.2 * i);
  Subbands levels = solve_subbands(c.s, c.state.potential_v);
  c.state.energy_ev = levels.energy_ev;
  c.state.psi = levels.psi;
  const int n = c.problem.angles, nphi = c.problem.nphi;
  for (std::int64_t row = 0; row < c.problem.rows(); ++row) {
    std::vector<double> half(static_cast<std::size_t>(nphi) / 2 + 1);
    for (double& value : half) value = uniform(random);
    for (int m = 0; m < n; ++m) c.state.pdf.push_back(half[m <= nphi / 2 ? m : nphi - m]);
  }
  return c;
}

struct Outcome {
  PointState state;
  Moments before, after;
  std::vector<double> current_integral;
  double dt_fs = 0;
};

Outcome one_step(const Case& c, const Device& device, int steps = 1) {
  const auto kernels = make_mosfet_kernels(device);
  kernels->load(c.problem, 1);
  kernels->set_boundary(0, c.boundary);
  kernels->set_state(0, c.state);
  Outcome out;
  out.before = kernels->moments(0);
  kernels->refresh(0);
  const Advance advance = kernels->advance(steps, {1e9}, 1.0)[0];
  EXPECT_FALSE(advance.chord_failed);
  out.dt_fs = advance.steps.back().dt_fs;
  out.after = kernels->moments(0);
  out.state = kernels->state(0);
  out.current_integral = kernels->take_current_integral(0);
  return out;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) largest = std::max(largest, std::fabs(a[k] - b[k]));
  return largest;
}

class Transport : public test::OnEveryDevice {};

/// A case in the form of the oracle.
oracle::Transport oracle_of(const Case& c) {
  oracle::Transport t{.nx = c.s.nx,
                      .nw = c.problem.nw,
                      .nphi = c.problem.nphi,
                      .valleys = 3,
                      .subbands = 2,
                      .dx = c.s.dx_nm,
                      .dw = c.problem.dw_ev,
                      .alpha = 0.5,
                      .kt = c.problem.kt_ev,
                      .weno_epsilon = c.problem.weno_epsilon};
  for (const ValleyPair& valley : c.s.valleys) {
    t.mx.push_back(valley.mx_m0 * kElectronMass_ev_fs2_nm2);
    t.my.push_back(valley.my_m0 * kElectronMass_ev_fs2_nm2);
  }
  for (int v = 0; v < 3; ++v)
    for (int p = 0; p < 2; ++p)
      for (int i = 0; i < c.s.nx; ++i)
        t.energy.push_back(c.state.energy_ev[(c.s.family_of[v] * 2 + p) * c.s.nx + i]);
  for (int a = 0; a < 6; ++a)
    for (int b = 0; b < 6; ++b)
      for (int i = 0; i < c.s.nx; ++i) {
        const double* x = &c.state.psi[((c.s.family_of[a / 2] * 2 + a % 2) * c.s.nx + i) * c.s.nz];
        const double* y = &c.state.psi[((c.s.family_of[b / 2] * 2 + b % 2) * c.s.nx + i) * c.s.nz];
        double sum = 0.0;
        for (int j = 0; j < c.s.nz; ++j) sum += x[j] * x[j] * y[j] * y[j] * c.s.dz_nm;
        t.overlap.push_back(sum);
      }
  for (const auto& process : c.problem.processes)
    t.processes.push_back({process.kind == ProcessKind::kElastic, process.kind == ProcessKind::kF,
                           process.coupling * (process.kind == ProcessKind::kElastic ? 2.0 : 1.0),
                           process.occupation, process.energy_ev});
  t.inflow_source = c.boundary.inflow_source;
  t.inflow_drain = c.boundary.inflow_drain;
  t.pauli = c.problem.pauli;
  t.states = kStates_per_ev2_fs2 / c.boundary.pdf_scale;
  t.elastic = c.problem.elastic_rate_fs;
  return t;
}

void expect_the_oracles_step(const Case& c, const Device& device) {
  const oracle::Transport t = oracle_of(c);
  std::vector<double> full;
  for (std::int64_t row = 0; row < c.problem.rows(); ++row)
    for (int m = 0; m < t.nphi; ++m)
      full.push_back(c.state.pdf[row * c.problem.angles + (m <= t.nphi / 2 ? m : t.nphi - m)]);

  const Outcome outcome = one_step(c, device);
  const std::vector<double> expected = oracle::advance(t, full, outcome.dt_fs);
  double worst = 0.0;
  for (std::int64_t row = 0; row < c.problem.rows(); ++row)
    for (int m = 0; m < c.problem.angles; ++m)
      worst = std::max(worst, std::fabs(outcome.state.pdf[row * c.problem.angles + m] -
                                        expected[row * t.nphi + m]));
  EXPECT_LT(worst, 1e-12);
}

// The whole step against the oracle's literal form of the equations on the full circle. The limit
// is 1e-12 of max Φ, which leaves four digits for sums in another order.
TEST_P(Transport, OneStepAgreesWithTheOracle) {
  expect_the_oracles_step(random_case({}, 11), GetParam());
}

// The comparison with blocking cells up to 80 % full, and with impurities.
TEST_P(Transport, OneBlockedStepAgreesWithTheOracle) {
  Case c = random_case({{"statistics.kind", "fermi"}, {"scattering.impurities", "true"}}, 12);
  c.boundary.pdf_scale = 0.1;
  expect_the_oracles_step(c, GetParam());
}

// In every column the missing particles equal the fluxes out of it, for any pdf and both angle
// ranges. The balanced operator moves nothing along x, so scattering stays on. The limit is 1e-14
// of the flux scale; the sums of 2e3 terms may differ a little more.
TEST_P(Transport, ParticlesAreConservedColumnByColumn) {
  for (const auto& settings :
       {std::vector<Setting>{},
        {{"mesh.phi_flux", "split"}},
        {{"mesh.range", "full"}},
        {{"statistics.kind", "fermi"}, {"scattering.roughness.height_nm", "0.3"}}}) {
    Case c = random_case(settings, 5);
    if (c.problem.pauli) c.boundary.pdf_scale = 0.1;
    const Outcome outcome = one_step(c, GetParam());
    double scale = 0.0, worst = 0.0;
    for (const double value : outcome.current_integral)
      scale = std::max(scale, std::fabs(value) / c.s.dx_nm);
    for (int i = 0; i < c.s.nx; ++i) {
      double change = 0.0;
      for (int a = 0; a < c.problem.n_states(); ++a)
        change += 2.0 * (outcome.after.sheet_nm2[a * c.s.nx + i] -
                         outcome.before.sheet_nm2[a * c.s.nx + i]);
      change += (outcome.current_integral[i + 1] - outcome.current_integral[i]) / c.s.dx_nm;
      worst = std::max(worst, std::fabs(change));
      double sheet = 0.0;
      for (int a = 0; a < c.problem.n_states(); ++a)
        sheet += 2.0 * outcome.after.sheet_nm2[a * c.s.nx + i];
      scale = std::max(scale, sheet);  // the density itself is rounded to 1e-16 of its value
    }
    EXPECT_LT(worst / scale, 2e-14);
  }
}

// A Maxwellian of flat levels between contacts that inject an equal Maxwellian does not change.
TEST_P(Transport, EquilibriumIsStationary) {
  Case c = random_case({}, 3);
  std::fill(c.state.potential_v.begin(), c.state.potential_v.end(), 0.0);
  Subbands levels = solve_subbands(c.s, c.state.potential_v);
  c.state.energy_ev = levels.energy_ev;
  c.state.psi = levels.psi;
  double largest = 0.0;
  for (std::int64_t row = 0; row < c.problem.rows(); ++row) {
    const int l = static_cast<int>(row % c.problem.nw),
              i = static_cast<int>(row / c.problem.nw % c.s.nx);
    const int a = static_cast<int>(row / c.problem.nw / c.s.nx), v = a / 2;
    const double w = c.problem.grid().w(l);
    const double value =
        c.problem.root_mass[v] * c.problem.grid().kane(l) *
        std::exp(-(levels.energy_ev[(c.s.family_of[v] * 2 + a % 2) * c.s.nx + i] + w) /
                 c.problem.kt_ev);
    largest = std::max(largest, value);
    std::fill_n(&c.state.pdf[row * c.problem.angles], c.problem.angles, value);
    if (i == 0)
      c.boundary.inflow_source[a * c.problem.nw + l] =
          c.boundary.inflow_drain[a * c.problem.nw + l] = value;
  }
  for (double& value : c.state.pdf) value /= largest;
  for (double& value : c.boundary.inflow_source) value /= largest;
  for (double& value : c.boundary.inflow_drain) value /= largest;
  const Outcome outcome = one_step(c, GetParam(), 20);
  EXPECT_LT(largest_difference(outcome.state.pdf, c.state.pdf), 1e-12);
}

// On the whole circle the discrete right side keeps Φ(−φ) = Φ(φ) to the bit, which justifies the
// half range. The half range gives equal numbers.
TEST_P(Transport, EvennessHoldsBitwiseAndHalfEqualsFull) {
  const Case full = random_case({{"mesh.range", "full"}}, 17);
  const Case half = random_case({{"mesh.phi_flux", "split"}}, 17);
  const Outcome whole = one_step(full, GetParam(), 3), folded = one_step(half, GetParam(), 3);
  const int n = full.problem.nphi;
  double worst = 0.0;
  for (std::int64_t row = 0; row < full.problem.rows(); ++row)
    for (int m = 0; m <= n / 2; ++m) {
      ASSERT_EQ(whole.state.pdf[row * n + m], whole.state.pdf[row * n + (n - m) % n])
          << row << ' ' << m;
      worst = std::max(
          worst, std::fabs(whole.state.pdf[row * n + m] - folded.state.pdf[row * (n / 2 + 1) + m]));
    }
  EXPECT_LT(worst, 1e-12);
}

TEST_P(Transport, TwoRunsGiveTheSameBits) {
  const Case c = random_case({}, 23);
  EXPECT_EQ(one_step(c, GetParam(), 5).state.pdf, one_step(c, GetParam(), 5).state.pdf);
}

// Δt = cfl / max(|a¹|/Δx + |a²|/Δw + |a³|/Δφ) over the points of phase space, including the lead of
// the levels.
TEST_P(Transport, TheTimeStepIsThatOfTheFastestPoint) {
  Case c = random_case({}, 43);
  for (std::size_t k = 0; k < c.state.energy_ev.size(); ++k)
    c.state.lead_ev.push_back(0.01 * std::sin(0.7 * static_cast<double>(k)));
  const int nx = c.s.nx, nw = c.problem.nw, np = c.s.subbands;
  double largest = 0.0;
  for (int a = 0; a < c.problem.n_states(); ++a) {
    const double mass = (a / np == 0 ? 0.98 : 0.19) * 5.685630104;
    const std::size_t level = (static_cast<std::size_t>(c.s.family_of[a / np]) * np + a % np) * nx;
    const auto felt = [&](int i) {
      return c.state.energy_ev[level + i] + c.state.lead_ev[level + i];
    };
    for (int i = 0; i < nx; ++i) {
      const int end = std::min(i, nx - 1 - i), in = i < nx / 2 ? 1 : -1;
      const double rise = end == 0 ? 6.0 * (-3.0 * felt(i) + 4.0 * felt(i + in) - felt(i + 2 * in))
                          : end == 1
                              ? 6.0 * (felt(i + 1) - felt(i - 1))
                              : felt(i - 2) - 8.0 * felt(i - 1) + 8.0 * felt(i + 1) - felt(i + 2);
      const double slope = std::fabs(rise) / (12.0 * c.s.dx_nm);
      for (int l = 0; l < nw; ++l) {
        const double w = (l + 0.5) * 0.5 / nw, root = std::sqrt(2.0 * w * (1.0 + 0.5 * w) * mass);
        for (int m = 0; m <= 8; ++m) {
          const double phi = m * M_PI / 8,
                       speed = root / mass / (1.0 + w) * std::fabs(std::cos(phi));
          largest = std::max(largest, speed / c.s.dx_nm + slope * speed / (0.5 / nw) +
                                          slope * std::sin(phi) / root / (M_PI / 8));
        }
      }
    }
  }
  EXPECT_NEAR(one_step(c, GetParam()).dt_fs * largest / c.problem.cfl, 1.0, 1e-9);
}

// Flux and energy of a state and column, computed from the pdf by the band's own formulas.
TEST_P(Transport, MomentsAreSumsOverThePdf) {
  const Case c = random_case({}, 41);
  const Outcome outcome = one_step(c, GetParam());
  const int nw = c.problem.nw, n = c.problem.angles, np = c.s.subbands;
  for (int a = 0; a < c.problem.n_states(); ++a)
    for (int i = 0; i < c.s.nx; i += 5) {
      const double mass = (a / np == 0 ? 0.98 : 0.19) * 5.685630104;
      double flux = 0.0, energy = 0.0;
      for (int l = 0; l < nw; ++l) {
        const double w = (l + 0.5) * 0.5 / nw,
                     speed = std::sqrt(2.0 * w * (1.0 + 0.5 * w) / mass) / (1.0 + w);
        for (int m = 0; m < n; ++m) {
          const double cell =
              (m == 0 || m == n - 1 ? 1.0 : 2.0) * 2.0 * M_PI / 16 * 0.5 / nw *
              outcome.state.pdf[((static_cast<std::size_t>(a) * c.s.nx + i) * nw + l) * n + m] *
              c.boundary.pdf_scale;
          flux += cell * speed * std::cos(m * 2.0 * M_PI / 16);
          energy += cell * w;
        }
      }
      const std::size_t at = static_cast<std::size_t>(a) * c.s.nx + i;
      EXPECT_NEAR(outcome.after.flux_nm_fs[at], flux, 1e-9 * energy);
      EXPECT_NEAR(outcome.after.energy_ev_nm2[at] / energy, 1.0, 1e-9);
    }
}

// Back ends share formulas but not loop orders, and sums over φ differ in order: 1e-12 of max Φ.
TEST_P(Transport, AgreesWithTheCpu) {
  for (const auto& settings :
       {std::vector<Setting>{},
        {{"mesh.phi_flux", "split"}},
        {{"mesh.range", "full"}},
        {{"scattering.scheme", "paper"}},
        {{"scattering.scheme", "none"}},
        {{"mesh.nw", "40"}, {"mesh.nphi", "24"}},
        {{"mesh.nw", "60"}, {"mesh.nphi", "8"}},
        {{"mesh.nw", "40"}, {"mesh.nphi", "12"}},
        {{"statistics.kind", "fermi"}},
        {{"scattering.roughness.height_nm", "0.3"}, {"scattering.impurities", "true"}},
        {{"statistics.kind", "fermi"}, {"scattering.roughness.spectrum", "gaussian"}}}) {
    Case c = random_case(settings, 31);
    if (c.problem.pauli) c.boundary.pdf_scale = 0.1;
    const Outcome here = one_step(c, GetParam()), there = one_step(c, find_device("cpu"));
    EXPECT_LT(largest_difference(here.state.pdf, there.state.pdf), 1e-12);
    EXPECT_LT(largest_difference(here.after.pdf_w, there.after.pdf_w), 1e-11);
    EXPECT_NEAR(here.dt_fs / there.dt_fs, 1.0, 1e-13);
    for (std::size_t i = 0; i < here.current_integral.size(); ++i)
      EXPECT_NEAR(here.current_integral[i], there.current_integral[i], 1e-12);
  }
}

QUASI_ON_EVERY_DEVICE(Transport);

// Derivative of e^{sin x} by flux differences: fifth order.
TEST(Weno, IsFifthOrderOnASmoothProfile) {
  std::vector<double> errors;
  for (const int n : {64, 128, 256}) {
    const double h = 2.0 * units::kPi / n;
    std::vector<double> f(n);
    // The profile at the nodes; the flux difference approximates its derivative there.
    for (int k = 0; k < n; ++k) f[k] = std::exp(std::sin(k * h));
    const auto at = [&](int k) { return f[(k % n + n) % n]; };
    const auto flux = [&](int k) {
      return weno5({at(k - 2), at(k - 1), at(k), at(k + 1), at(k + 2)}, 1e-12);
    };
    double error = 0.0;
    for (int k = 0; k < n; ++k)
      error += std::fabs((flux(k) - flux(k - 1)) / h - std::cos(k * h) * f[k]) / n;
    errors.push_back(error);
  }
  EXPECT_GT(std::log2(errors[0] / errors[1]), 4.5);
  EXPECT_GT(std::log2(errors[1] / errors[2]), 4.8);
}

// The profile moves once around the circle with TVD-RK3 and Δt ∝ h^{5/3}, so that the fifth order
// in space shows.
TEST(Weno, AdvectsWithFifthOrder) {
  std::vector<double> errors;
  for (const int n : {64, 128}) {
    const double h = 1.0 / n;
    std::vector<double> f(n), start;
    for (int k = 0; k < n; ++k) f[k] = std::exp(std::sin(2.0 * units::kPi * k * h));
    start = f;
    const auto rhs = [&](const std::vector<double>& u) {
      std::vector<double> out(n);
      const auto at = [&](int k) { return u[(k % n + n) % n]; };
      const auto flux = [&](int k) {
        return weno5({at(k - 2), at(k - 1), at(k), at(k + 1), at(k + 2)}, 1e-12);
      };
      for (int k = 0; k < n; ++k) out[k] = -(flux(k) - flux(k - 1)) / h;
      return out;
    };
    const int steps = static_cast<int>(std::ceil(4.0 * std::pow(n, 5.0 / 3.0)));
    const double dt = 1.0 / steps;
    for (int step = 0; step < steps; ++step) {
      std::vector<double> a(f), b(f), l = rhs(f);
      for (int k = 0; k < n; ++k) a[k] = f[k] + dt * l[k];
      l = rhs(a);
      for (int k = 0; k < n; ++k) b[k] = 0.75 * f[k] + 0.25 * (a[k] + dt * l[k]);
      l = rhs(b);
      for (int k = 0; k < n; ++k) f[k] = f[k] / 3.0 + 2.0 / 3.0 * (b[k] + dt * l[k]);
    }
    double error = 0.0;
    for (int k = 0; k < n; ++k) error += std::fabs(f[k] - start[k]) / n;
    errors.push_back(error);
  }
  EXPECT_GT(std::log2(errors[0] / errors[1]), 4.8);
}

}  // namespace
}  // namespace quasi::mosfet
