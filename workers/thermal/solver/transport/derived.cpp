#include "workers/thermal/solver/transport/derived.hpp"

#include <chrono>
#include <cmath>

#include "workers/thermal/physics/broadening.hpp"
#include "workers/thermal/solver/harmonic/gruneisen.hpp"
#include "workers/thermal/solver/harmonic/isotope.hpp"

namespace quasi::thermal {

Derived derive(const Transport& transport, const SecondOrder& second_order,
               const SparseForceConstants& third_order, ConductivityRun& run) {
  const auto start = std::chrono::steady_clock::now();
  Derived derived;
  derived.gruneisen = gruneisen_parameters(transport, third_order);
  std::vector<std::vector<double>> rates;
  for (const TemperatureResult& r : run.by_temperature) {
    derived.mean_gruneisen.push_back(mean_gruneisen(transport, derived.gruneisen, r.temperature_k));
    rates.push_back(r.rate_per_ps);
    if (transport.options.wires.enabled)
      derived.wires_rta.push_back(wire_conductivity(transport, r.temperature_k, r.rate_per_ps));
  }
  if (transport.options.coherence)
    derived.coherence =
        coherence_conductivity(transport, second_order, transport.options.temperatures_k, rates);
  run.seconds["derived"] +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return derived;
}

Cumulative spectrum_by_omega(const Transport& t, const std::vector<Mat3>& by_row) {
  const std::vector<double> width = elastic_widths_rad_ps(t.modes, t.options.harmonic);
  Cumulative spectrum = cumulative_by_omega(t, {});
  const auto n_ticks = static_cast<std::int64_t>(spectrum.abscissa.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t tick = 0; tick < n_ticks; ++tick) {
    Mat3 sum{};
    for (std::size_t row = 0; row < by_row.size(); ++row) {
      const std::int64_t mode = t.mode_of_row(static_cast<std::int64_t>(row));
      const double mismatch = spectrum.abscissa[tick] - t.modes.omega_rad_ps[mode];
      if (std::fabs(mismatch) >= 4.0 * width[mode]) continue;  // 1e-7 of the peak
      const double delta = gaussian_delta_ps(mismatch, width[mode]);
      for (int i = 0; i < 3; ++i) sum[i] = sum[i] + delta * by_row[row][i];
    }
    spectrum.kappa_w_per_mk[tick] = sum;
  }
  return spectrum;
}

}  // namespace quasi::thermal
