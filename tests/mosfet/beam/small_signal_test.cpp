// Tests the small-signal response of the beam scheme with the field's feedback: conservation of
// current, reciprocity, and the limit of zero frequency.

#include "workers/mosfet/solver/beam/small_signal/small_signal.hpp"

#include <gtest/gtest.h>

#include <complex>

#include "tests/mosfet/beam/small_device.hpp"

namespace quasi::mosfet {
namespace {

using test::small_film;
using test::SmallDevice;

// Columns of Y add to zero, since current is conserved. Rows do so up to the grid of H, which stays
// when equal voltages at all terminals shift all energies; the nightly test refines it.
TEST(SmallSignal, RowsAndColumnsOfYAddToZero) {
  const SmallDevice small(small_film());
  const BiasPoint bias{0.4, 0.3};
  const BeamDevice device = small.device();
  const test::AdmittanceDefects found =
      test::defects_of(BeamSmallSignal(device, bias, small.steady(bias)).at(1e12));
  EXPECT_LT(found.columns, 1e-7);
  EXPECT_LT(found.rows, 0.04);
}

/// Laws that hold for every kind of inflow, statistics and scattering.
class SmallSignalOf : public testing::TestWithParam<std::vector<Setting>> {};

// At frequency zero g_m and g_ds are the slopes of the steady current on the grid of the point. The
// current has a kink wherever a level passes an edge of the cells of H. With cells of 25 meV the
// nearest kinks in V_DS are 0.1 to 1 mV away, so that the differences take 0.1 mV.
TEST_P(SmallSignalOf, TheLimitOfFrequencyZeroIsTheSlopeOfTheSteadyCurrent) {
  const test::SlopeRatios found = test::slope_ratios(SmallDevice(small_film(GetParam())), 1e-4);
  EXPECT_NEAR(found.gm, 1.0, 1e-4);
  EXPECT_NEAR(found.gds, 1.0, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Models, SmallSignalOf,
                         testing::Values(std::vector<Setting>{{"contact.inflow", "neutral"}},
                                         std::vector<Setting>{{"contact.inflow", "neutral"},
                                                              {"statistics.kind", "fermi"}},
                                         std::vector<Setting>{
                                             {"scattering.roughness.height_nm", "0.6"},
                                             {"scattering.impurities", "true"}}));

// Without drain bias the symmetric device answers alike from both sides.
TEST(SmallSignal, YIsReciprocalWithoutDrainBias) {
  const SmallDevice small(small_film());
  const BiasPoint bias{0.4, 0.0};
  const BeamDevice device = small.device();
  const Admittance found = BeamSmallSignal(device, bias, small.steady(bias)).at(1e12);
  const auto y = [&](Terminal i, Terminal j) { return found.at(i, j); };
  const std::complex<double> sd = y(Terminal::kSource, Terminal::kDrain),
                             ds = y(Terminal::kDrain, Terminal::kSource),
                             sg = y(Terminal::kSource, Terminal::kGate),
                             gs = y(Terminal::kGate, Terminal::kSource);
  EXPECT_LT(std::abs(sd - ds), 1e-9 * std::abs(sd));
  EXPECT_LT(std::abs(sg - gs), 1e-3 * std::abs(sg));
  EXPECT_GT(found.capacitance_f_m(Terminal::kGate, Terminal::kGate), 0.0);
}

}  // namespace
}  // namespace quasi::mosfet
