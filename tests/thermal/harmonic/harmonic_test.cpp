#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/input/deck/crystal_input.hpp"
#include "workers/thermal/input/force_constants/force_constants.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/reference_data.hpp"
#include "tests/thermal/support/reference_run.hpp"

namespace quasi::thermal {
namespace {

struct Harmonic {
  Control control;
  Crystal crystal;
  SecondOrder constants;
  Symmetry symmetry;
  Modes modes;
};

Harmonic solve(const test::ReferenceRun& run, const std::vector<std::string>& settings) {
  Harmonic h;
  h.control = run.control(settings);
  h.crystal = make_crystal(h.control);
  h.constants = read_second_order(run.deck(), h.control, h.crystal);
  h.symmetry = find_symmetry(h.crystal, h.control.symmetry_options());
  SilentProgress silent;
  h.modes =
      solve_harmonic(h.crystal, h.constants, h.symmetry, h.control.harmonic_options(), silent);
  return h;
}

class ReferenceHarmonic : public testing::TestWithParam<const char*> {};

// ω agrees to a relative 1e-8, v to 1e-7 km/s after the projection; the irreducible points are
// equal.
TEST_P(ReferenceHarmonic, AgreesWithTheReferenceProgram) {
  QUASI_NEED_REFERENCE("thermal/si/runs");
  const test::ReferenceRun run(GetParam());
  const Harmonic h = solve(run, {"compat=fourphonon"});
  const auto points = run.table("BTE.qpoints");
  ASSERT_EQ(h.symmetry.irreducible.size(), points.size());
  const auto omega = run.table("BTE.omega");
  const int nb = h.modes.n_branches;
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(h.symmetry.irreducible[i] + 1, points[i][1]);
    EXPECT_EQ(h.symmetry.multiplicity[i], points[i][2]);
    for (int s = 0; s < nb; ++s) {
      const double reference = omega[i][s];
      EXPECT_NEAR(h.modes.omega_rad_ps[h.symmetry.irreducible[i] * nb + s], reference,
                  1e-8 * std::fabs(reference) + 1e-9);
    }
  }
  const auto velocity = run.table("BTE.v");
  double worst = 0.0;
  for (std::size_t row = 0; row < velocity.size(); ++row) {
    const std::size_t i = row % points.size();
    const std::size_t s = row / points.size();
    for (int d = 0; d < 3; ++d)
      worst = std::max(
          worst, std::fabs(velocity[row][d] -
                           h.modes.velocity_km_s[(h.symmetry.irreducible[i] * nb + s) * 3 + d]));
  }
  EXPECT_LT(worst, 1e-7);
}

INSTANTIATE_TEST_SUITE_P(Runs, ReferenceHarmonic,
                         testing::Values("3ph_m04_sb1.0", "3ph_m08_sb1.0", "3ph_m12_sb1.0"),
                         [](const auto& test) { return std::string(test.param).substr(4, 3); });

}  // namespace
}  // namespace quasi::thermal
