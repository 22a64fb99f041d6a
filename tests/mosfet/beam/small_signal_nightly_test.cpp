// Tests the laws of the small-signal response on cells of 6.25 meV, which take minutes.

#include <gtest/gtest.h>

#include "tests/mosfet/beam/small_device.hpp"

namespace quasi::mosfet {
namespace {

using test::small_film;
using test::SmallDevice;

// On finer cells the kinks of the current are denser, so that the differences take 0.01 mV. The
// tolerance of the steady states, 1e-9 V, leaves 1e-4 in them.
TEST(SmallSignalNightly, SlopesOfTheSteadyCurrentAreThoseOfY) {
  for (const char* inflow : {"fixed", "neutral"})
    for (const char* statistics : {"maxwell", "fermi"}) {
      const SmallDevice small(small_film({{"mesh.dh_ev", "0.00625"},
                                          {"contact.inflow", inflow},
                                          {"statistics.kind", statistics}}));
      const test::SlopeRatios found = test::slope_ratios(small, 1e-5);
      EXPECT_NEAR(found.gm, 1.0, 1e-3) << inflow << ' ' << statistics;
      EXPECT_NEAR(found.gds, 1.0, 1e-3) << inflow << ' ' << statistics;
      EXPECT_NEAR(found.source, 1.0, 1e-3) << inflow << ' ' << statistics;
    }
}

TEST(SmallSignalNightly, SlopesWithImpuritiesAreThoseOfY) {
  const SmallDevice small(
      small_film({{"scattering.roughness.height_nm", "0.6"}, {"scattering.impurities", "true"}}));
  const test::SlopeRatios found = test::slope_ratios(small, 1e-4);
  EXPECT_NEAR(found.gm, 1.0, 1e-4);
  EXPECT_NEAR(found.gds, 1.0, 1e-4);
}

TEST(SmallSignalNightly, RowsAndColumnsOfYAddToZero) {
  const SmallDevice small(small_film({{"mesh.dh_ev", "0.00625"}, {"mesh.nkappa", "12"}}));
  const BeamDevice device = small.device();
  const BiasPoint bias{0.4, 0.3};
  const BeamSmallSignal response(device, bias, small.steady(bias));
  for (const double frequency_hz : {0.0, 1e12}) {
    const test::AdmittanceDefects found = test::defects_of(response.at(frequency_hz));
    EXPECT_LT(found.columns, 1e-7) << frequency_hz;
    EXPECT_LT(found.rows, 1e-12) << frequency_hz;
    EXPECT_LT(found.staying_rows, 0.01) << frequency_hz;
  }
}

}  // namespace
}  // namespace quasi::mosfet
