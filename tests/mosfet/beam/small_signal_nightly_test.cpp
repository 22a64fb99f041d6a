// Tests the laws of the small-signal response on cells of 6.25 meV, which take minutes.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/mosfet/beam/noise_laws.hpp"

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

// Laws of the noise with everything that changes the rates of moves.
TEST(SmallSignalNightly, NoiseWithImpuritiesObeysTheLawsOfAllNoise) {
  for (const char* statistics : {"maxwell", "fermi"}) {
    const std::vector<Setting> settings{{"mesh.subbands", "2"},
                                        {"statistics.kind", statistics},
                                        {"scattering.roughness.height_nm", "0.6"},
                                        {"scattering.impurities", "true"}};
    EXPECT_LT(test::nyquist_deviation(settings), 1e-6) << statistics;
    for (const double frequency_hz : {0.0, 1e12})
      EXPECT_LT(test::transposed_deviation(settings, frequency_hz), 1e-6)
          << statistics << ' ' << frequency_hz;
  }
}

// At fixed levels and with Maxwell statistics the noise is that of two opposite thermionic
// currents, whatever scatters the electrons.
TEST(SmallSignalNightly, NoiseAtFixedLevelsIsThatOfTwoOppositeCurrents) {
  const SmallDevice small(test::coarse_film(
      {{"scattering.roughness.height_nm", "0.6"}, {"scattering.impurities", "true"}}));
  const BeamDevice device = small.device();
  const BiasPoint bias{0.4, 0.1};
  const BeamFieldNoise frozen(device, bias, small.steady(bias), {.field_responds = false});
  const double shot = 2.0 * units::kElementaryCharge_c * frozen.current_a_per_m() /
                      std::tanh(0.5 * bias.vds_v / (units::kBoltzmann_ev_k * 300.0));
  EXPECT_NEAR(frozen.at(0.0).s[1][1].real() / shot, 1.0, 1e-6);
}

}  // namespace
}  // namespace quasi::mosfet
