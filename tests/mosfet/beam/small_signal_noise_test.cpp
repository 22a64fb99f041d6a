// Tests current noise with the field's feedback: the transposed equations against the small-signal
// response, and the laws of Nyquist and of thermionic currents.

#include "workers/mosfet/solver/beam/small_signal/small_signal_noise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>

#include "tests/mosfet/beam/noise_laws.hpp"
#include "workers/mosfet/solver/beam/small_signal/field_response.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"
#include "workers/units/constants.hpp"

namespace quasi::mosfet {
namespace {

using test::small_film;
using test::SmallDevice;

constexpr double kElectron_c = units::kElementaryCharge_c;
constexpr double kKt_ev = units::kBoltzmann_ev_k * 300.0;

using test::difference;
using test::largest_of;
using test::nyquist;

/// Laws that hold for every kind of statistics and scattering. The nightly test has impurities.
class SmallSignalNoiseOf : public testing::TestWithParam<std::vector<Setting>> {};

TEST_P(SmallSignalNoiseOf, TransposedEquationsGiveTheSameY) {
  EXPECT_LT(test::transposed_deviation(GetParam(), 1e12), 1e-6);
}

TEST_P(SmallSignalNoiseOf, IsThatOfNyquistWithoutDrainBias) {
  EXPECT_LT(test::nyquist_deviation(GetParam()), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(
    Models, SmallSignalNoiseOf,
    testing::Values(std::vector<Setting>{}, std::vector<Setting>{{"statistics.kind", "fermi"}},
                    std::vector<Setting>{{"scattering.roughness.height_nm", "0.6"}}));

// At other frequencies the law holds up to the grid of H, as the sums of rows of Y do.
TEST(SmallSignalNoise, IsNearThatOfNyquistAtOneTerahertz) {
  const SmallDevice small(small_film());
  const BeamDevice device = small.device();
  const BiasPoint bias{0.4, 0.0};
  const NoiseSpectrum found = BeamFieldNoise(device, bias, small.steady(bias)).at(1e12);
  EXPECT_LT(difference(found.s, nyquist(found.y)), 1e-2);
}

// At fixed levels all noise is that of two opposite thermionic currents, S = 2qI coth(qV/2kT). The
// field's feedback suppresses the noise of a biased device.
TEST(SmallSignalNoise, AtFixedLevelsIsThatOfTwoOppositeCurrents) {
  const SmallDevice small(small_film());
  const BeamDevice device = small.device();
  for (const double vds_v : {0.05, 0.3}) {
    const BiasPoint bias{0.4, vds_v};
    const BeamSteadyState state = small.steady(bias);
    const BeamFieldNoise frozen(device, bias, state, BeamFieldNoise::Field::kFrozen);
    const double shot =
        2.0 * kElectron_c * frozen.current_a_per_m() / std::tanh(0.5 * vds_v / kKt_ev);
    const NoiseSpectrum at_rest = frozen.at(0.0);
    EXPECT_NEAR(at_rest.s[1][1].real() / shot, 1.0, 1e-6) << vds_v;
    EXPECT_NEAR(at_rest.s[0][0].real() / shot, 1.0, 1e-6) << vds_v;
    const NoiseSpectrum found = BeamFieldNoise(device, bias, state).at(0.0);
    EXPECT_GT(found.s[1][1].real(), 0.0);
    EXPECT_LT(found.s[1][1].real(), shot);
    EXPECT_LT(std::abs(found.s[2][2]), 1e-6 * shot);
  }
}

// The electrons of each cell of H conduct independently, with Fermi statistics and without
// scattering. A cell carries the current J (f_S − f_D) and has the noise 2q² J [f_S (1 − f_S)
// + f_D (1 − f_D)]. The identity f_S (1 − f_S) + f_D (1 − f_D) = (f_S − f_D) [coth(qV/2kT)
// − (f_S − f_D)] gives this noise from the currents. A cell of H that contains the top of the
// barrier holds electrons of source and drain, for which the formula is not exact. This deviation
// is 3e-4 with cells of 50 meV.
TEST(SmallSignalNoise, OfCollisionlessFermionsIsThatOfTheirReservoirs) {
  const SmallDevice small(
      test::coarse_film({{"statistics.kind", "fermi"}, {"run.transport", "ballistic"}}));
  const BeamDevice device = small.device();
  const BiasPoint bias{0.6, 0.1};
  const BeamSteadyState state = small.steady(bias);
  const FieldResponse response(device, bias, state, BeamOrder::kFirst);
  const BeamInflow& inflow = response.transport().inflow();
  const BeamGrid& grid = state.grid;
  const std::vector<double> currents = response.transport().face_currents(response.occupations());
  const std::size_t nk = static_cast<std::size_t>(grid.n_h),
                    faces = static_cast<std::size_t>(grid.nx) + 1;
  double independent = 0.0, noise = 0.0;
  for (std::size_t at = 0; at < currents.size(); ++at) {
    if (at / nk % faces != 1) continue;
    const std::size_t k = at % nk;
    const double filled =
        (inflow.source[k] - inflow.drain[k]) * grid.boltzmann(static_cast<int>(k));
    const double current_a_m = 2.0 * 1.602176634e5 * currents[at];  // two valleys
    independent += 2.0 * kElectron_c * current_a_m / std::tanh(0.5 * bias.vds_v / kKt_ev);
    noise +=
        2.0 * kElectron_c * current_a_m * (1.0 / std::tanh(0.5 * bias.vds_v / kKt_ev) - filled);
  }
  const NoiseSpectrum found =
      BeamFieldNoise(device, bias, state, BeamFieldNoise::Field::kFrozen).at(0.0);
  EXPECT_NEAR(found.s[1][1].real() / noise, 1.0, 1e-3);
  EXPECT_LT(noise, 0.9 * independent);
}

// S is Hermitian and no sum of currents has negative noise. It is real at frequency zero.
TEST(SmallSignalNoise, IsHermitianAndPositive) {
  const SmallDevice small(small_film());
  const BeamDevice device = small.device();
  const BiasPoint bias{0.4, 0.3};
  const NoiseSpectrum found = BeamFieldNoise(device, bias, small.steady(bias)).at(3e12);
  for (std::size_t i = 0; i < kTerminals; ++i)
    for (std::size_t j = 0; j < kTerminals; ++j)
      EXPECT_LT(std::abs(found.s[i][j] - std::conj(found.s[j][i])), 1e-12 * largest_of(found.s));
  EXPECT_GT(found.s[2][2].real(), 0.0);
  EXPECT_GE(found.s[1][1].real() * found.s[2][2].real(), std::norm(found.s[1][2]));
}

TEST(SmallSignalNoise, ADeckWithNoiseHasSpectraAtEveryPoint) {
  const Deck deck = small_film({{"bias.points", "[[0.4, 0.3]]"},
                                {"small_signal.frequencies_hz", "[0.0]"},
                                {"small_signal.noise", "true"}});
  SilentProgress silent;
  const PointResult point = run_sweep(deck, {.devices = {find_device("cpu")}}, silent)[0];
  const auto& array = point.arrays.at("small_signal/noise_real");
  EXPECT_EQ(array.shape, (std::vector<std::int64_t>{1, kTerminals, kTerminals}));
  EXPECT_EQ(array.units, "A^2/(Hz m)");
  EXPECT_GT(point.numbers.at("fano_factor"), 0.0);
  EXPECT_LT(point.numbers.at("fano_factor"), 1.0);
}

TEST(SmallSignalNoise, DecksMayHaveAnyStatisticsAndScattering) {
  for (const Setting& setting :
       {Setting{"statistics.kind", "fermi"}, Setting{"scattering.impurities", "true"},
        Setting{"scattering.roughness.height_nm", "0.6"}})
    EXPECT_TRUE(small_film({{"small_signal.noise", "true"}, setting}).small_signal.noise);
}

}  // namespace
}  // namespace quasi::mosfet
