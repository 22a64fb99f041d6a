// Tests current noise with the field's feedback: the transposed equations against the small-signal
// response, and the laws of Nyquist and of thermionic currents.

#include "workers/mosfet/solver/beam/small_signal/small_signal_noise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>

#include "tests/mosfet/beam/small_device.hpp"
#include "workers/backend/error.hpp"
#include "workers/mosfet/kernels/beam/beam_noise.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"
#include "workers/units/constants.hpp"

namespace quasi::mosfet {
namespace {

using test::small_film;
using test::SmallDevice;

constexpr double kElectron_c = units::kElementaryCharge_c;
constexpr double kKt_ev = units::kBoltzmann_ev_k * 300.0;

double largest_of(const NoiseSpectrum::Matrix& m) {
  double largest = 0.0;
  for (const auto& row : m)
    for (const std::complex<double>& value : row) largest = std::max(largest, std::abs(value));
  return largest;
}

/// Returns the largest difference of two matrices over the largest entry of the second one.
double difference(const NoiseSpectrum::Matrix& a, const NoiseSpectrum::Matrix& b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < kTerminals; ++i)
    for (std::size_t j = 0; j < kTerminals; ++j)
      largest = std::max(largest, std::abs(a[i][j] - b[i][j]));
  return largest / largest_of(b);
}

/// Returns 2kT (Y + Y*ᵀ), A²/(Hz m).
NoiseSpectrum::Matrix nyquist(const NoiseSpectrum::Matrix& y) {
  NoiseSpectrum::Matrix out{};
  for (std::size_t i = 0; i < kTerminals; ++i)
    for (std::size_t j = 0; j < kTerminals; ++j)
      out[i][j] = 2.0 * kKt_ev * kElectron_c * (y[i][j] + std::conj(y[j][i]));
  return out;
}

// Ψ and Φ solve the transposed equations: the currents that they give to the voltages of the
// terminals are those of the small-signal response.
TEST(SmallSignalNoise, TransposedEquationsGiveTheSameY) {
  const SmallDevice small(small_film());
  const BeamDevice device = small.device();
  const BiasPoint bias{0.4, 0.3};
  const BeamSteadyState state = small.steady(bias);
  const BeamFieldNoise noise(device, bias, state);
  const BeamSmallSignal forward(device, bias, state, {.order = BeamOrder::kFirst});
  for (const double frequency_hz : {0.0, 1e12})
    EXPECT_LT(difference(noise.at(frequency_hz).y, forward.at(frequency_hz).y), 1e-6)
        << frequency_hz;
}

// Without drain bias S = 4kT Re Y at frequency zero, with the field's feedback.
TEST(SmallSignalNoise, IsThatOfNyquistWithoutDrainBias) {
  const SmallDevice small(small_film());
  const BeamDevice device = small.device();
  const BiasPoint bias{0.4, 0.0};
  const BeamFieldNoise noise(device, bias, small.steady(bias));
  const NoiseSpectrum found = noise.at(0.0);
  EXPECT_LT(difference(found.s, nyquist(found.y)), 1e-6);
}

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

TEST(SmallSignalNoise, FermiStatisticsAndRoughnessAreRefused) {
  const auto message = [](const Setting& setting) -> std::string {
    try {
      small_film({{"small_signal.noise", "true"}, setting});
    } catch (const InvalidInput& refused) {
      return refused.what();
    }
    return "accepted";
  };
  EXPECT_NE(message({"statistics.kind", "fermi"}).find("small_signal.noise"), std::string::npos);
  EXPECT_NE(message({"scattering.impurities", "true"}).find("small_signal.noise"),
            std::string::npos);
  EXPECT_EQ(message({"small_signal.from_hz", "1e9"}), "accepted");
}

}  // namespace
}  // namespace quasi::mosfet
