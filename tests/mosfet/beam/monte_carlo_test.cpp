// Tests the current of the beam scheme at fixed levels against Monte Carlo, which has no mesh.

#include "tests/mosfet/beam/monte_carlo.hpp"

#include <gtest/gtest.h>

namespace quasi::mosfet {
namespace {

double beam_current(const test::BeamOptions& options) {
  const test::TestBeam beam(options);
  const BeamSolution found = solve_beam(beam.problem, beam.scattering, {1e-9, 400});
  return beam_fluxes(beam.geometry, beam.scattering, beam.problem, found.g).current[3];
}

// Above threshold without a barrier electrons are lost by scattering alone. The standard deviation
// of Monte Carlo is 0.3 %. Cells of 6.25 meV leave 0.6 % with N_κ = 48 and 1.7 % with N_κ = 12.
TEST(MonteCarlo, HasTheCurrentOfTheBeamSchemeWithoutABarrier) {
  const test::BeamOptions coarse{
      .barrier_ev = 0.0, .vds_v = 0.4, .dx_nm = 1.0, .dh_ev = 0.00625, .n_kappa = 12};
  test::BeamOptions fine = coarse;
  fine.n_kappa = 48;
  test::MonteCarlo electrons(coarse, 5);
  const auto share = electrons.transmission(50000);
  const double current = electrons.entering_current() * share.passed;
  EXPECT_LT(share.error, 3e-3 * share.passed);
  EXPECT_NEAR(beam_current(fine) / current, 1.0, 0.012);
  EXPECT_LT(std::fabs(beam_current(fine) - current), std::fabs(beam_current(coarse) - current));
}

}  // namespace
}  // namespace quasi::mosfet
