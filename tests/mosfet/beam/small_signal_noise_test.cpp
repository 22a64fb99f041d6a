// Tests current noise with the field's feedback: the transposed equations against the small-signal
// response, and the laws of Nyquist and of thermionic currents.

#include "workers/mosfet/solver/beam/small_signal/small_signal_noise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>

#include "tests/mosfet/beam/noise_laws.hpp"
#include "tests/support/every_device.hpp"
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

/// Returns the noise of the current of a terminal over that of two opposite thermionic currents,
/// S = 2qI coth(qV/2kT), which all noise is at fixed levels.
double over_shot_noise(const BeamFieldNoise& frozen, double vds_v, Terminal terminal) {
  const double shot =
      2.0 * kElectron_c * frozen.current_a_per_m() / std::tanh(0.5 * vds_v / kKt_ev);
  const auto at = static_cast<std::size_t>(terminal);
  return frozen.at(0.0).s[at][at].real() / shot;
}

TEST(SmallSignalNoise, AtFixedLevelsIsThatOfTwoOppositeCurrents) {
  const SmallDevice small(small_film());
  const BeamDevice device = small.device();
  for (const double vds_v : {0.05, 0.3}) {
    const BiasPoint bias{0.4, vds_v};
    const BeamSteadyState state = small.steady(bias);
    for (const bool sums_on_host : {false, true}) {
      const BeamFieldNoise frozen(device, bias, state,
                                  {.field_responds = false, .sums_on_host = sums_on_host});
      EXPECT_NEAR(over_shot_noise(frozen, vds_v, Terminal::kDrain), 1.0, 1e-6) << vds_v;
      EXPECT_NEAR(over_shot_noise(frozen, vds_v, Terminal::kSource), 1.0, 1e-6) << vds_v;
    }
    // The field's feedback suppresses the noise of a biased device.
    const BeamFieldNoise responding(device, bias, state);
    const double suppressed = over_shot_noise(responding, vds_v, Terminal::kDrain);
    EXPECT_GT(suppressed, 0.0);
    EXPECT_LT(suppressed, 1.0);
    EXPECT_LT(std::fabs(over_shot_noise(responding, vds_v, Terminal::kGate)), 1e-6);
  }
}

/// A model and a frequency.
struct NoiseCase {
  std::vector<Setting> settings;
  double hz = 2e12;
  bool field_responds = true;
};

class SmallSignalNoiseTables : public testing::TestWithParam<NoiseCase> {};

// Levels, wave functions and overlaps of the host follow V by the same formulas as the tables, but
// GMRES solves for Ψ within every product for Φ there, to 1e-11 and 1e-9.
TEST_P(SmallSignalNoiseTables, AgreeWithTheSumsOfTheHost) {
  const NoiseCase& p = GetParam();
  const SmallDevice small(test::coarse_film(p.settings));
  const BiasPoint bias{0.4, 0.3};
  const BeamDevice device = small.device();
  const BeamSteadyState state = small.steady(bias);
  const BeamFieldNoise tables(device, bias, state, {.field_responds = p.field_responds}),
      host(device, bias, state, {.field_responds = p.field_responds, .sums_on_host = true});
  const NoiseSpectrum found = tables.at(p.hz), expected = host.at(p.hz);
  EXPECT_LT(difference(found.s, expected.s), 1e-7);
  EXPECT_LT(difference(found.y, expected.y), 1e-7);
  EXPECT_EQ(tables.current_a_per_m(), host.current_a_per_m());
}

INSTANTIATE_TEST_SUITE_P(Models, SmallSignalNoiseTables,
                         testing::Values(NoiseCase{.settings = {{"mesh.subbands", "2"}}},
                                         NoiseCase{.settings = {{"contact.inflow", "neutral"}}},
                                         NoiseCase{.settings = {}, .hz = 0.0},
                                         NoiseCase{.settings = {}, .field_responds = false},
                                         NoiseCase{.settings = {{"run.transport", "ballistic"}}},
                                         NoiseCase{.settings = {{"run.transport", "ballistic"},
                                                                {"statistics.kind", "fermi"}}}));

class SmallSignalNoiseOn : public test::OnEveryDevice {};

TEST_P(SmallSignalNoiseOn, IsThatOfNyquistWithoutDrainBias) {
  EXPECT_LT(test::nyquist_deviation({}, {.device = GetParam()}), 1e-6);
}

TEST_P(SmallSignalNoiseOn, AtFixedLevelsIsThatOfTwoOppositeCurrents) {
  const SmallDevice small(test::coarse_film({{"mesh.subbands", "2"}}));
  const BeamDevice device = small.device();
  const BiasPoint bias{0.4, 0.1};
  const BeamFieldNoise frozen(device, bias, small.steady(bias),
                              {.field_responds = false, .device = GetParam()});
  EXPECT_NEAR(over_shot_noise(frozen, bias.vds_v, Terminal::kDrain), 1.0, 1e-6);
}

// The tables of the transposed equations are those of the equations themselves, so that Y agrees to
// the tolerance of GMRES.
TEST_P(SmallSignalNoiseOn, TransposedTablesGiveTheSameY) {
  for (const double hz : {0.0, 3e12})
    EXPECT_LT(test::transposed_deviation({{"mesh.subbands", "2"}}, hz, {.device = GetParam()}),
              1e-8)
        << hz;
}

// Both sides sum the same tables with the same function objects. Rounding differs by contracted
// products, and GMRES ends at 1e-10. Equal calls have equal bits, in any order of the frequencies.
TEST_P(SmallSignalNoiseOn, AgreesWithTheHostAndRepeatsItsBits) {
  const SmallDevice small(test::coarse_film({{"mesh.subbands", "2"}}));
  const BeamDevice device = small.device();
  const BiasPoint bias{0.4, 0.3};
  const BeamSteadyState state = small.steady(bias);
  const BeamFieldNoise host(device, bias, state),
      found(device, bias, state, {.device = GetParam()}),
      again(device, bias, state, {.device = GetParam()});
  for (const double hz : {0.0, 1e12})
    EXPECT_LT(difference(found.at(hz).s, host.at(hz).s), 1e-8) << hz;
  const NoiseSpectrum high = again.at(1e12), low = again.at(0.0);
  EXPECT_EQ(low.s, found.at(0.0).s);
  EXPECT_EQ(high.s, found.at(1e12).s);
}

QUASI_ON_EVERY_DEVICE(SmallSignalNoiseOn);

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
      BeamFieldNoise(device, bias, state, {.field_responds = false}).at(0.0);
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
