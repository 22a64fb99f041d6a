#include "workers/mosfet/solver/beam/small_signal/small_signal_report.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "workers/mosfet/solver/beam/small_signal/rational_sweep.hpp"
#include "workers/mosfet/solver/beam/small_signal/small_signal_noise.hpp"
#include "workers/units/constants.hpp"

namespace quasi::mosfet {
namespace {

// The gate's conductance must exceed the solver's error of Y by far for Mason's gain.
constexpr double kLeastGateConductance = 1e-5;  // of |Y_GG|

// Interpolation in frequency leaves errors of this size in Y and S, relative to their largest
// entry.
constexpr double kInterpolationTolerance = 1e-6;

using Matrix = NoiseSpectrum::Matrix;

std::vector<std::complex<double>> flat(const Matrix& matrix) {
  std::vector<std::complex<double>> values;
  for (const auto& row : matrix) values.insert(values.end(), row.begin(), row.end());
  return values;
}

Matrix matrix_of(const std::vector<std::complex<double>>& values) {
  Matrix matrix{};
  for (std::size_t n = 0; n < kTerminals * kTerminals; ++n)
    matrix[n / kTerminals][n % kTerminals] = values[n];
  return matrix;
}

std::array<std::complex<double>, kTerminals> last_of(
    const std::vector<std::complex<double>>& values) {
  std::array<std::complex<double>, kTerminals> last{};
  std::copy(values.end() - kTerminals, values.end(), last.begin());
  return last;
}

/// A gain at a frequency.
struct GainPoint {
  double frequency_hz = 0, gain = 0;
};

// Returns the frequency at which a gain falls through 1.
std::optional<double> crossing_hz(const std::vector<GainPoint>& gains) {
  for (std::size_t n = 1; n < gains.size(); ++n) {
    const GainPoint &a = gains[n - 1], &b = gains[n];
    if (!(a.gain >= 1.0 && b.gain < 1.0)) continue;
    const double share = std::log(a.gain) / std::log(a.gain / b.gain);
    return a.frequency_hz * std::pow(b.frequency_hz / a.frequency_hz, share);
  }
  return {};
}

bool has_unilateral_gain(const Admittance& y) {
  const std::complex<double> gate = y.at(Terminal::kGate, Terminal::kGate);
  const double gain = y.unilateral_gain();
  return gate.real() > kLeastGateConductance * std::abs(gate) && std::isfinite(gain) && gain > 0.0;
}

// Returns the largest sum of a column of Y, or of a row for cells of H that stay, over the largest
// entry.
double largest_defect(const std::vector<Admittance>& all, bool rows) {
  double defect = 0.0;
  for (const Admittance& y : all) {
    double largest = 0.0, sums = 0.0;
    for (std::size_t k = 0; k < kTerminals; ++k) {
      std::complex<double> sum = rows ? y.row_sums[k] : 0.0;
      for (std::size_t n = 0; n < kTerminals; ++n) {
        if (!rows) sum += y.y[n][k];
        largest = std::max(largest, std::abs(y.y[k][n]));
      }
      sums = std::max(sums, std::abs(sum));
    }
    defect = std::max(defect, sums / largest);
  }
  return defect;
}

void add_arrays(const std::vector<Admittance>& all, PointResult* point) {
  std::vector<double> frequency, real, imaginary, capacitance, current_gain, unilateral_gain;
  for (const Admittance& y : all) {
    frequency.push_back(y.frequency_hz);
    current_gain.push_back(y.frequency_hz > 0.0 ? y.current_gain()
                                                : std::numeric_limits<double>::infinity());
    unilateral_gain.push_back(has_unilateral_gain(y) ? y.unilateral_gain()
                                                     : std::numeric_limits<double>::quiet_NaN());
    for (int i = 0; i < kTerminals; ++i)
      for (int j = 0; j < kTerminals; ++j) {
        const auto to = static_cast<Terminal>(i), from = static_cast<Terminal>(j);
        real.push_back(y.at(to, from).real());
        imaginary.push_back(y.at(to, from).imag());
        capacitance.push_back(y.frequency_hz > 0.0 ? y.capacitance_f_m(to, from)
                                                   : std::numeric_limits<double>::quiet_NaN());
      }
  }
  const std::int64_t n = std::ssize(all);
  const std::vector<std::int64_t> matrices{n, kTerminals, kTerminals};
  point->add("small_signal/frequency", frequency, {n}, "Hz");
  point->add("small_signal/admittance_real", real, matrices, "S/m");
  point->add("small_signal/admittance_imaginary", imaginary, matrices, "S/m");
  point->add("small_signal/capacitance", capacitance, matrices, "F/m");
  point->add("small_signal/current_gain", current_gain, {n}, "1");
  point->add("small_signal/unilateral_gain", unilateral_gain, {n}, "1");
}

void add_numbers(const std::vector<Admittance>& all, PointResult* point) {
  auto& n = point->numbers;
  const Admittance& lowest = all.front();
  n["transconductance_s_per_m"] = lowest.at(Terminal::kDrain, Terminal::kGate).real();
  n["output_conductance_s_per_m"] = lowest.at(Terminal::kDrain, Terminal::kDrain).real();
  const auto moving = std::find_if(all.begin(), all.end(),
                                   [](const Admittance& y) { return y.frequency_hz > 0.0; });
  if (moving != all.end())
    n["gate_capacitance_f_per_m"] = moving->capacitance_f_m(Terminal::kGate, Terminal::kGate);
  const GainFigures figures = gain_figures(all);
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) n[name] = *value;
  };
  add("cutoff_hz", figures.cutoff_hz);
  add("cutoff_extrapolated_hz", figures.cutoff_extrapolated_hz);
  add("oscillation_hz", figures.oscillation_hz);
  add("oscillation_extrapolated_hz", figures.oscillation_extrapolated_hz);
  n["admittance_column_defect"] = largest_defect(all, false);
  n["admittance_row_defect"] = largest_defect(all, true);
}

// Adds the spectra, and the noise of the drain current over that of independent electrons at the
// lowest frequency.
void add_noise(const SweptValues& all, double current_a_per_m, PointResult* point) {
  std::vector<double> real, imaginary;
  for (const auto& matrix : all.values)
    for (const std::complex<double>& value : matrix) {
      real.push_back(value.real());
      imaginary.push_back(value.imag());
    }
  const std::vector<std::int64_t> matrices{std::ssize(all.values), kTerminals, kTerminals};
  point->add("small_signal/noise_real", real, matrices, "A^2/(Hz m)");
  point->add("small_signal/noise_imaginary", imaginary, matrices, "A^2/(Hz m)");
  if (point->bias.vds_v != 0.0)
    point->numbers["fano_factor"] = matrix_of(all.values.front())[1][1].real() /
                                    (2.0 * units::kElementaryCharge_c * std::fabs(current_a_per_m));
}

// Returns Y and its sums of rows at all frequencies. The tables are freed on return, before those
// of the noise are made.
SweptValues swept_admittances(const std::vector<double>& frequencies_hz, const BeamDevice& device,
                              const Device& processor, const BeamSteadyState& state,
                              Progress& progress, const BiasPoint& bias) {
  const BeamSmallSignal response(device, bias, state, {.device = processor});
  return rational_sweep(
      frequencies_hz,
      [&](double frequency_hz) {
        progress.throw_if_cancelled();
        const Admittance found = response.at(frequency_hz);
        std::vector<std::complex<double>> values = flat(found.y);
        values.insert(values.end(), found.row_sums.begin(), found.row_sums.end());
        return values;
      },
      kInterpolationTolerance);
}

}  // namespace

GainFigures gain_figures(const std::vector<Admittance>& y) {
  std::vector<GainPoint> current, power;
  for (const Admittance& each : y) {
    if (!(each.frequency_hz > 0.0)) continue;
    current.push_back({each.frequency_hz, each.current_gain()});
    if (has_unilateral_gain(each)) power.push_back({each.frequency_hz, each.unilateral_gain()});
  }
  GainFigures figures{.cutoff_hz = crossing_hz(current),
                      .cutoff_extrapolated_hz = {},
                      .oscillation_hz = crossing_hz(power),
                      .oscillation_extrapolated_hz = {}};
  if (!current.empty() && current.front().gain > 1.0)
    figures.cutoff_extrapolated_hz = current.front().frequency_hz * current.front().gain;
  if (!power.empty() && power.front().gain > 1.0)
    figures.oscillation_extrapolated_hz =
        power.front().frequency_hz * std::sqrt(power.front().gain);
  return figures;
}

void add_small_signal(const SmallSignalSettings& settings, const BeamDevice& device,
                      const Device& processor, const BeamSteadyState& state, Progress& progress,
                      PointResult* point) {
  const std::vector<double>& frequencies = settings.frequencies_hz;
  if (frequencies.empty()) return;
  const SweptValues swept =
      swept_admittances(frequencies, device, processor, state, progress, point->bias);
  std::vector<Admittance> all;
  for (std::size_t n = 0; n < frequencies.size(); ++n)
    all.push_back({.frequency_hz = frequencies[n],
                   .y = matrix_of(swept.values[n]),
                   .row_sums = last_of(swept.values[n])});
  add_arrays(all, point);
  add_numbers(all, point);
  point->numbers["small_signal_solutions"] = swept.solutions;
  if (!settings.noise) return;
  const BeamFieldNoise noise(device, point->bias, state, {.device = processor});
  const SweptValues spectra = rational_sweep(
      frequencies,
      [&](double frequency_hz) {
        progress.throw_if_cancelled();
        return flat(noise.at(frequency_hz).s);
      },
      kInterpolationTolerance);
  add_noise(spectra, noise.current_a_per_m(), point);
  point->numbers["noise_solutions"] = spectra.solutions;
}

}  // namespace quasi::mosfet
