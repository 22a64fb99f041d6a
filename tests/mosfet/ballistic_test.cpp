#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tests/mosfet/fixtures.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/physics/kane_band.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

struct Row {
  int nx, nw, nphi;
  const char* flux;
  double t_fs;
  double ratio[3];  ///< expected, ν = 0, 1, 2; 0 where not compared
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.nx << "x" << row.nw << "x" << row.nphi << " " << row.flux;
}

double barrier_ev(double x_nm) {
  return 0.06 * std::exp(-std::pow((x_nm - 10.0) / 3.0, 2)) -
         0.1 * (1.0 + std::tanh((x_nm - 13.0) / 1.5));
}

/// The mean over x of the conserved current at `t_fs`, in units of the exact value.
double current_ratio(const Row& row, int valley) {
  const double mx[] = {0.98, 0.19, 0.19}, my[] = {0.19, 0.98, 0.19}, mz[] = {0.19, 0.19, 0.98};
  const double exact_a_m[] = {45.163, 102.569, 45.163};
  const Deck deck = parse_deck(
      "parameters = \"paper\"\n[geometry]\nsource_nm = 5.0\nchannel_nm = 10.0\ndrain_nm = 5.0\n"
      "[scattering]\nscheme = \"none\"\n[[valley]]\nmx = " +
          std::to_string(mx[valley]) + "\nmy = " + std::to_string(my[valley]) +
          "\nmz = " + std::to_string(mz[valley]),
      {{"mesh.nx", std::to_string(row.nx)},
       {"mesh.nz", "9"},
       {"mesh.subbands", "1"},
       {"mesh.nw", std::to_string(row.nw)},
       {"mesh.nphi", std::to_string(row.nphi)},
       {"mesh.wmax_ev", "0.5"},
       {"mesh.phi_flux", row.flux},
       {"run.cfl", "0.8"}},
      "test deck", ".");
  const Structure s = make_structure(deck);
  TransportProblem problem = make_transport_problem(deck, s);
  problem.frozen_field = true;
  const double kt = problem.kt_ev;
  const KaneBand band{s.valleys[0].mx_m0, s.valleys[0].my_m0, 0.5};

  PointBoundary boundary;
  boundary.fixed_v.assign(static_cast<std::size_t>(s.nx) * s.nz, 0.0);
  std::vector<double> shape;
  for (int l = 0; l < problem.nw; ++l) {
    const double w = problem.grid().w(l);
    shape.push_back(maxwell_correction(problem) * kStates_per_ev2_fs2 * band_jacobian(band, w) *
                    std::exp(-w / kt));
    boundary.inflow_source.push_back(shape.back() * std::exp(-barrier_ev(0.0) / kt));
    boundary.inflow_drain.push_back(shape.back() * std::exp((-0.2 - barrier_ev(20.0)) / kt));
  }
  boundary.pdf_scale =
      *std::max_element(boundary.inflow_source.begin(), boundary.inflow_source.end());
  for (double& value : boundary.inflow_source) value /= boundary.pdf_scale;
  for (double& value : boundary.inflow_drain) value /= boundary.pdf_scale;

  PointState start;
  start.potential_v = boundary.fixed_v;
  start.psi.assign(static_cast<std::size_t>(problem.level_count()) * s.nz, 0.0);
  for (int i = 0; i < s.nx; ++i) {
    start.energy_ev.push_back(barrier_ev(s.x_nm[i]));
    const double fermi = s.x_nm[i] < 10.0 ? 0.0 : -0.2;
    for (int l = 0; l < problem.nw; ++l)
      start.pdf.insert(
          start.pdf.end(), static_cast<std::size_t>(problem.angles),
          shape[l] / boundary.pdf_scale * std::exp((fermi - start.energy_ev.back()) / kt));
  }
  const auto kernels = make_mosfet_kernels_cpu();
  kernels->load(problem, 1);
  kernels->set_boundary(0, boundary);
  kernels->set_state(0, start);
  kernels->advance(1000000, {row.t_fs - 0.5}, 1.0);
  kernels->take_current_integral(0);
  kernels->advance(1000000, {row.t_fs}, 1.0);  // mean over the last half femtosecond
  double mean = 0.0;
  for (const double value : kernels->take_current_integral(0)) mean += value / 0.5 / (s.nx + 1);
  return mean * kCurrentUnit_a_m / exact_a_m[valley];
}

class FixedBarrier : public testing::TestWithParam<Row> {};
class FixedBarrierNightly : public FixedBarrier {};

void compare(const Row& row) {
  for (int valley = 0; valley < 3; ++valley) {
    if (row.ratio[valley] == 0.0) continue;
    const double ratio = current_ratio(row, valley);
    EXPECT_NEAR(ratio / row.ratio[valley], 1.0, 5e-3) << "pair " << valley << ": " << ratio;
  }
}

// Ballistic flow over a frozen analytic barrier tests masses, Jacobians, signs and prefactors
// together. The exact currents come from the flux formula with the barrier's true top. The ratios
// of a mesh to them are known to 0.5 % from an independent code with this scheme and this mesh.
TEST_P(FixedBarrier, PassesTheKnownShareOfTheExactCurrent) { compare(GetParam()); }

// The finer rows take minutes on one core.
TEST_P(FixedBarrierNightly, PassesTheKnownShareOfTheExactCurrent) {
  if (std::getenv("QUASI_NIGHTLY") == nullptr) GTEST_SKIP() << "set QUASI_NIGHTLY=1 to run it";
  compare(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Coarse, FixedBarrier,
                         testing::Values(Row{41, 16, 16, "split", 120, {0, 1.1230, 1.1218}},
                                         Row{41, 32, 16, "split", 120, {0, 1.0397, 1.0398}},
                                         Row{41, 32, 16, "upwind", 120, {0, 1.0417, 1.0417}}));
INSTANTIATE_TEST_SUITE_P(Fine, FixedBarrierNightly,
                         testing::Values(Row{41, 32, 16, "upwind", 400, {1.0430, 1.0430, 1.0430}},
                                         Row{41, 64, 32, "upwind", 120, {0, 0.9884, 0.9898}},
                                         Row{81, 64, 32, "upwind", 120, {0, 0.9970, 0.9987}}));

// The closed form to 1 %, on the coarsest mesh that gives it at this barrier: the ratio is 0.9954.
// It is 0.993 with 24 angles and 0.988 with 16; finer Δx and Δw with 16 angles give 0.984 … 0.986.
TEST(FixedBarrierClosedForm, IsMetToOnePercent) {
  EXPECT_NEAR(current_ratio({61, 48, 32, "upwind", 120, {}}, 2), 1.0, 1e-2);
}

}  // namespace
}  // namespace quasi::mosfet
