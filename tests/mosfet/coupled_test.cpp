#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/published/mosfet_newton.hpp"
#include "tests/mosfet/fixtures.hpp"
#include "tests/support/every_device.hpp"
#include "workers/backend/error.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/kernels/electrostatics/subbands.hpp"
#include "workers/mosfet/kernels/transport/transport_cpu.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

struct Coupled {
  TransportProblem problem;
  PointBoundary boundary;
  PointState start;
};

Coupled coupled(double vgs_v, double vds_v, const std::vector<Setting>& settings = {}) {
  std::vector<Setting> all{
      {"mesh.subbands", "2"}, {"mesh.nw", "24"}, {"mesh.nphi", "12"}, {"mesh.wmax_ev", "0.9"}};
  all.insert(all.end(), settings.begin(), settings.end());
  const Deck deck = test::default_deck(33, 33, all);
  const Structure s = make_structure(deck);
  const Equilibrium contact = solve_contact(deck, s, 0);
  const BiasPoint bias{vgs_v, vds_v};
  Coupled c{.problem = make_transport_problem(deck, s)};
  c.boundary = make_point_boundary(deck, c.problem, bias, contact, contact);
  c.start = make_start(deck, c.problem, bias, c.boundary, {contact, contact},
                       solve_equilibrium(deck, s, bias, contact, contact));
  return c;
}

std::unique_ptr<MosfetKernels> start(const Coupled& c, std::unique_ptr<MosfetKernels> kernels) {
  kernels->load(c.problem, 1);
  kernels->set_boundary(0, c.boundary);
  kernels->set_state(0, c.start);
  kernels->refresh(0);
  return kernels;
}

std::unique_ptr<MosfetKernels> loaded(const Coupled& c, const Device& device) {
  return start(c, make_mosfet_kernels(device));
}

/// CPU kernels with the published Newton method.
std::unique_ptr<MosfetKernels> loaded_published(const Coupled& c) {
  return start(c, make_mosfet_kernels_cpu(std::make_shared<PublishedNewton>()));
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) largest = std::max(largest, std::fabs(a[k] - b[k]));
  return largest;
}

// Threads of a refresh, and of the published iteration, find a column without levels. The caller
// gets their failure.
TEST(CoupledCpu, AColumnWithoutLevelsIsAFailureOfTheCaller) {
  for (const bool published : {false, true}) {
    SCOPED_TRACE(published);
    Coupled c = coupled(0.6, 0.4, {{"mesh.range", "full"}});
    const auto kernels = published ? loaded_published(c) : loaded(c, find_device("cpu"));
    std::fill(c.start.potential_v.begin(), c.start.potential_v.end(), std::nan(""));
    kernels->set_state(0, c.start);
    EXPECT_THROW(
        {
          kernels->refresh(0);
          kernels->advance(1, {1e9}, 1.0);
        },
        NotConverged);
  }
}

class CoupledStep : public test::OnEveryDevice {};

// One step with the field solved to 1e-12 V. Back ends agree to 1e-10 of max Φ and to 1e-10 V
// although their frozen matrices differ (block elimination against a single-precision inverse).
TEST_P(CoupledStep, AgreesWithTheCpu) {
  const Coupled c = coupled(0.6, 0.4, {{"run.tol_v", "1e-12"}});
  const auto here = loaded(c, GetParam()), there = loaded(c, find_device("cpu"));
  const Advance a = here->advance(1, {1e9}, 1.0)[0], b = there->advance(1, {1e9}, 1.0)[0];
  ASSERT_FALSE(a.chord_failed);
  ASSERT_FALSE(b.chord_failed);
  const PointState x = here->state(0), y = there->state(0);
  EXPECT_LT(largest_difference(x.pdf, y.pdf), 1e-10);
  EXPECT_LT(largest_difference(x.potential_v, y.potential_v), 1e-10);
  EXPECT_LT(largest_difference(x.energy_ev, y.energy_ev), 1e-10);
  EXPECT_NEAR(a.steps[0].current_mid, b.steps[0].current_mid, 1e-10);
  EXPECT_NEAR(a.steps[0].charge_nm, b.steps[0].charge_nm, 1e-10);
  EXPECT_NEAR(a.min_pdf, b.min_pdf, 1e-12);
  EXPECT_NEAR(a.top_share, b.top_share, 1e-12);
}

// The lead of a steady run (ε + τ_d ∂ε/∂t) and neutral inflow, on both back ends.
TEST_P(CoupledStep, LeadAndNeutralInflowAgreeWithTheCpu) {
  const Coupled c = coupled(0.6, 0.4, {{"run.tol_v", "1e-12"}, {"contact.inflow", "neutral"}});
  ASSERT_NEAR(c.problem.lead_fs, 6.18, 0.01);  // 2/ω_p at 1e20 cm⁻³ and m = 0.26
  const auto here = loaded(c, GetParam()), there = loaded(c, find_device("cpu"));
  const Advance a = here->advance(3, {1e9}, 1.0)[0], b = there->advance(3, {1e9}, 1.0)[0];
  ASSERT_FALSE(a.chord_failed);
  const PointState x = here->state(0), y = there->state(0);
  EXPECT_LT(largest_difference(x.pdf, y.pdf), 1e-10);
  EXPECT_LT(largest_difference(x.lead_ev, y.lead_ev), 1e-8);  // 40 times a difference of levels
  EXPECT_GT(largest_difference(y.lead_ev, std::vector<double>(y.lead_ev.size())), 1e-3);
  for (const int side : {0, 1}) EXPECT_NEAR(a.inflow_scale[side], b.inflow_scale[side], 1e-10);
}

// The quasi-equilibrium holds the charge of the contacts' doping, so neutral inflow does not change
// it. A column with half its electrons and all other directions empty needs more inflow.
TEST(NeutralInflow, IsOneAtTheQuasiEquilibriumAndMakesUpForWhatIsMissing) {
  for (const char* statistics : {"maxwell", "fermi"}) {
    Coupled c = coupled(0.5, 0.2, {{"contact.inflow", "neutral"}, {"statistics.kind", statistics}});
    const auto before = neutral_inflow(c.problem, c.boundary, c.start.pdf.data());
    EXPECT_NEAR(before[0], 1.0, 1e-10);
    EXPECT_NEAR(before[1], 1.0, 1e-10);
    for (double& value : c.start.pdf) value *= 0.5;
    const auto after = neutral_inflow(c.problem, c.boundary, c.start.pdf.data());
    // Five of twelve angles enter, seven do not: 5 s + 7/2 = 12.
    EXPECT_NEAR(after[0], 1.7, 1e-10);
    EXPECT_NEAR(after[1], 1.7, 1e-10);
  }
}

// The published iteration, from a cold start with the transported subbands only, has the same
// solution and takes more steps.
TEST(CoupledCpu, ThePublishedIterationAgrees) {
  const Coupled c =
      coupled(0.6, 0.4, {{"run.tol_v", "1e-12"}, {"mesh.range", "full"}, {"mesh.subbands", "4"}});
  const auto here = loaded_published(c), there = loaded(c, find_device("cpu"));
  const Advance a = here->advance(2, {1e9}, 1.0)[0], b = there->advance(2, {1e9}, 1.0)[0];
  ASSERT_FALSE(a.chord_failed);
  EXPECT_GT(a.steps[1].chord_iterations, b.steps[1].chord_iterations);
  const PointState x = here->state(0), y = there->state(0);
  EXPECT_LT(largest_difference(x.pdf, y.pdf), 1e-10);
  EXPECT_LT(largest_difference(x.potential_v, y.potential_v), 1e-10);
  EXPECT_LT(largest_difference(x.energy_ev, y.energy_ev), 1e-10);
}

// The last chord step moves V after the levels were found. The levels follow it to first order, so
// that even with a loose tolerance they belong to V to second order.
TEST_P(CoupledStep, LevelsFollowTheLastStepOfTheField) {
  const Coupled c = coupled(0.6, 0.4, {{"run.tol_v", "1e-3"}});
  const auto kernels = loaded(c, GetParam());
  kernels->advance(1, {1e9}, 1.0);
  const PointState state = kernels->state(0);
  const Subbands exact = solve_subbands(c.problem.structure, state.potential_v);
  EXPECT_LT(largest_difference(state.energy_ev, exact.energy_ev), 1e-10);
}

TEST_P(CoupledStep, TwoRunsGiveTheSameBitsAndBatchesDoNotMatter) {
  const Coupled c = coupled(0.5, 0.2);
  const auto once = loaded(c, GetParam()), twice = loaded(c, GetParam());
  once->advance(8, {1e9}, 1.0);
  twice->advance(3, {1e9}, 1.0);
  twice->advance(5, {1e9}, 1.0);
  const PointState x = once->state(0), y = twice->state(0);
  EXPECT_EQ(x.pdf, y.pdf);
  EXPECT_EQ(x.potential_v, y.potential_v);
  EXPECT_EQ(x.current_integral, y.current_integral);
}

// Several points run in one call, on a GPU at the same time. One of them is idle and one stops
// early. Each has the bits of its run alone.
TEST_P(CoupledStep, PointsBesideEachOtherKeepTheirBits) {
  const std::vector<Coupled> points{coupled(0.6, 0.4), coupled(0.4, 0.1), coupled(0.5, 0.2)};
  const std::vector<double> stop{1e9, 0.5, 1e9};
  const auto together = make_mosfet_kernels(GetParam());
  together->load(points[0].problem, 4);
  for (int k = 0; k < 3; ++k) {
    together->set_boundary(k, points[k].boundary);
    together->set_state(k, points[k].start);
    together->refresh(k);
  }
  const std::vector<Advance> advanced =
      together->advance(9, {stop[0], stop[1], stop[2], -1.0}, 1.0);
  EXPECT_TRUE(advanced[3].steps.empty());
  EXPECT_LT(advanced[1].steps.size(), 9u);
  for (int k = 0; k < 3; ++k) {
    const auto alone = loaded(points[k], GetParam());
    EXPECT_EQ(alone->advance(9, {stop[k]}, 1.0)[0].steps.size(), advanced[k].steps.size());
    const PointState x = alone->state(0), y = together->state(k);
    EXPECT_EQ(x.pdf, y.pdf) << k;
    EXPECT_EQ(x.potential_v, y.potential_v) << k;
    EXPECT_EQ(x.current_integral, y.current_integral) << k;
    EXPECT_EQ(x.time_fs, y.time_fs) << k;
  }
}

// Thirteen angles are used because the order of a row's sum then matters.
TEST_P(CoupledStep, RollBackAndStateRestoreTheBits) {
  const Coupled c = coupled(0.5, 0.2, {{"mesh.nphi", "24"}});
  const auto kernels = loaded(c, GetParam());
  kernels->advance(4, {1e9}, 1.0);
  kernels->refresh(0);
  kernels->save(0);
  const PointState saved = kernels->state(0);
  kernels->advance(4, {1e9}, 1.0);
  const PointState first = kernels->state(0);
  kernels->roll_back(0);
  kernels->advance(4, {1e9}, 1.0);
  EXPECT_EQ(kernels->state(0).pdf, first.pdf);

  const auto other = make_mosfet_kernels(GetParam());
  other->load(c.problem, 1);
  other->set_boundary(0, c.boundary);
  other->set_state(0, saved);
  other->refresh(0);
  other->advance(4, {1e9}, 1.0);
  EXPECT_EQ(other->state(0).pdf, first.pdf);
  EXPECT_EQ(other->state(0).current_integral, first.current_integral);
}

// A point state and its boundary determine the next steps. In kernels that ran another point
// before, a restored state has equal sums over the pdf and continues with equal bits. With eight or
// twelve angles a GPU block has fewer than eight threads for a row of its tile.
TEST_P(CoupledStep, ARestoredStateContinuesWithTheSameBits) {
  for (const auto& settings :
       {std::vector<Setting>{{"mesh.nphi", "8"}, {"mesh.nw", "16"}, {"mesh.subbands", "1"}},
        {{"mesh.nphi", "8"}, {"mesh.nw", "60"}},
        {{"mesh.nphi", "12"}, {"mesh.nw", "40"}},
        {{"mesh.nphi", "8"}, {"mesh.phi_flux", "split"}},
        {{"mesh.nphi", "8"}, {"mesh.range", "full"}},
        {{"contact.inflow", "neutral"}},
        {{"statistics.kind", "fermi"}, {"scattering.roughness.height_nm", "0.3"}}}) {
    SCOPED_TRACE(settings.front().key + " " + settings.front().value);
    const Coupled c = coupled(0.5, 0.2, settings);
    const auto kernels = loaded(c, GetParam());
    kernels->advance(4, {1e9}, 1.0);
    const PointState saved = kernels->state(0);

    const auto other = make_mosfet_kernels(GetParam());
    other->load(c.problem, 1);
    Coupled foreign = c;
    for (double& value : foreign.boundary.inflow_source) value *= 1.5;
    for (double& value : foreign.start.pdf) value *= 0.7;
    other->set_boundary(0, foreign.boundary);
    other->set_state(0, foreign.start);
    other->refresh(0);
    other->advance(2, {1e9}, 0.5);
    other->set_boundary(0, c.boundary);
    other->set_state(0, saved);
    EXPECT_EQ(other->moments(0).pdf_w, kernels->moments(0).pdf_w);
    EXPECT_EQ(other->moments(0).sheet_nm2, kernels->moments(0).sheet_nm2);
    for (const auto& each : {kernels.get(), other.get()}) {
      each->refresh(0);
      each->advance(4, {1e9}, 1.0);
    }
    const PointState x = kernels->state(0), y = other->state(0);
    EXPECT_EQ(x.pdf, y.pdf);
    EXPECT_EQ(x.potential_v, y.potential_v);
    EXPECT_EQ(x.energy_ev, y.energy_ev);
    EXPECT_EQ(x.trend_v, y.trend_v);
    EXPECT_EQ(x.curvature_v, y.curvature_v);
    EXPECT_EQ(x.lead_ev, y.lead_ev);
    EXPECT_EQ(x.current_integral, y.current_integral);
    EXPECT_EQ(x.time_fs, y.time_fs);
  }
}

// Steps stop exactly at the requested time; later steps do nothing.
TEST_P(CoupledStep, StopsAtTheGivenTime) {
  const Coupled c = coupled(0.5, 0.1);
  const auto kernels = loaded(c, GetParam());
  const Advance a = kernels->advance(100, {1.0}, 1.0)[0];
  EXPECT_LT(a.steps.size(), 100u);
  EXPECT_NEAR(a.steps.back().time_fs, 1.0, 1e-9);
  EXPECT_TRUE(kernels->advance(10, {1.0}, 1.0)[0].steps.empty());
}

// Without drain bias I(x) of a symmetric device stays antisymmetric about its middle at all times,
// and Φ and V stay symmetric in z.
TEST_P(CoupledStep, ZeroBiasIsAntisymmetric) {
  const Coupled c = coupled(0.6, 0.0, {{"run.tol_v", "1e-12"}});
  const auto kernels = loaded(c, GetParam());
  for (int batch = 0; batch < 5; ++batch) {
    kernels->advance(4, {1e9}, 1.0);
    const std::vector<double> current = kernels->take_current_integral(0);
    for (std::size_t i = 0; i < current.size(); ++i)
      EXPECT_NEAR(current[i], -current[current.size() - 1 - i], 1e-12);
    const std::vector<double> v = kernels->potential(0);
    for (int i = 0; i < 33; ++i)
      for (int j = 0; j < 33; ++j) EXPECT_NEAR(v[i * 33 + j], v[i * 33 + 32 - j], 1e-10);
  }
  const PointState state = kernels->state(0);
  const Moments moments = kernels->moments(0);
  const Structure& s = c.problem.structure;
  for (int i = 0; i < 33; ++i)
    for (int j = 0; j < 33; ++j) {  // N of the top half against that of the bottom half, relative
                                    // to the contacts' 0.1 nm⁻³
      double difference = 0.0;
      for (int a = 0; a < c.problem.n_states(); ++a) {
        const int level =
            s.family_of[static_cast<std::size_t>(a / s.subbands)] * s.subbands + a % s.subbands;
        const double* psi = &state.psi[(static_cast<std::size_t>(level) * 33 + i) * 33];
        difference += 2.0 * moments.sheet_nm2[static_cast<std::size_t>(a) * 33 + i] *
                      (psi[j] * psi[j] - psi[32 - j] * psi[32 - j]);
      }
      EXPECT_NEAR(difference / 0.1, 0.0, 1e-10);
    }
}

QUASI_ON_EVERY_DEVICE(CoupledStep);

}  // namespace
}  // namespace quasi::mosfet
