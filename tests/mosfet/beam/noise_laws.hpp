#pragma once

#include <algorithm>
#include <complex>
#include <vector>

#include "tests/mosfet/beam/small_device.hpp"
#include "workers/mosfet/solver/beam/small_signal/small_signal_noise.hpp"
#include "workers/units/constants.hpp"

/// Laws of the current noise that hold for every kind of statistics and scattering.
namespace quasi::test {

inline double largest_of(const mosfet::TerminalMatrix& m) {
  double largest = 0.0;
  for (const auto& row : m)
    for (const std::complex<double>& value : row) largest = std::max(largest, std::abs(value));
  return largest;
}

/// Returns the largest difference of two matrices over the largest entry of the second one.
inline double difference(const mosfet::TerminalMatrix& a, const mosfet::TerminalMatrix& b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a.size(); ++j)
      largest = std::max(largest, std::abs(a[i][j] - b[i][j]));
  return largest / largest_of(b);
}

/// Returns 2kT (Y + Y*ᵀ), A²/(Hz m).
inline mosfet::TerminalMatrix nyquist(const mosfet::TerminalMatrix& y) {
  constexpr double kKt_j = units::kBoltzmann_ev_k * 300.0 * units::kElementaryCharge_c;
  mosfet::TerminalMatrix out{};
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t j = 0; j < y.size(); ++j)
      out[i][j] = 2.0 * kKt_j * (y[i][j] + std::conj(y[j][i]));
  return out;
}

/// Returns a film with coarse cells, since the laws hold on every mesh.
inline mosfet::Deck coarse_film(const std::vector<Setting>& settings) {
  std::vector<Setting> all{{"mesh.dh_ev", "0.05"}, {"mesh.nkappa", "3"}};
  all.insert(all.end(), settings.begin(), settings.end());
  return small_film(all);
}

/// Returns the deviation of Y by the transposed equations from Y by the equations themselves. Ψ
/// and Φ give the currents by the voltages of the terminals.
inline double transposed_deviation(const std::vector<Setting>& settings, double frequency_hz,
                                   const mosfet::NoiseMethod& method = {}) {
  const SmallDevice small(coarse_film(settings));
  const mosfet::BeamDevice device = small.device();
  const mosfet::BiasPoint bias{0.4, 0.3};
  const mosfet::BeamSteadyState state = small.steady(bias);
  const mosfet::BeamFieldNoise noise(device, bias, state, method);
  const mosfet::BeamSmallSignal forward(
      device, bias, state, {.order = mosfet::BeamOrder::kFirst, .device = method.device});
  return difference(noise.at(frequency_hz).y, forward.at(frequency_hz).y);
}

/// Returns the deviation of S from 2kT (Y + Y*ᵀ) without drain bias at frequency zero, with the
/// field's feedback.
inline double nyquist_deviation(const std::vector<Setting>& settings,
                                const mosfet::NoiseMethod& method = {}) {
  const SmallDevice small(coarse_film(settings));
  const mosfet::BeamDevice device = small.device();
  const mosfet::BiasPoint bias{0.4, 0.0};
  const mosfet::NoiseSpectrum found =
      mosfet::BeamFieldNoise(device, bias, small.steady(bias), method).at(0.0);
  return difference(found.s, nyquist(found.y));
}

}  // namespace quasi::test
