#include "workers/thermal/solver/transport/kappa_error.hpp"

#include <cmath>

#include "workers/thermal/solver/transport/subspace_conductivity.hpp"

namespace quasi::thermal {

double relative_kappa_error(const Transport& transport, const ConductivityRun& run, std::size_t t,
                            const std::function<double(std::int64_t)>& further_per_ps,
                            const std::function<double(std::int64_t)>& error_per_ps) {
  const std::int64_t n_rows = transport.n_rows();
  std::vector<double> w(static_cast<std::size_t>(n_rows));
  for (std::int64_t row = 0; row < n_rows; ++row) {
    const std::size_t at = t * static_cast<std::size_t>(n_rows) + static_cast<std::size_t>(row);
    w[row] = run.three_phonon.absorption_per_ps[at] + run.three_phonon.emission_per_ps[at];
    if (further_per_ps) w[row] += further_per_ps(row);
    if (!run.isotope_per_ps.empty()) w[row] += run.isotope_per_ps[row];
    if (!run.boundary_per_ps.empty()) w[row] += run.boundary_per_ps[row];
  }
  const double temperature_k = transport.options.temperatures_k[t];
  const std::vector<Mat3> kappa =
      mode_conductivity(transport, temperature_k, relaxation_time_field(transport, w));
  const std::vector<Mat3> inside = subspace_conductivity(transport, temperature_k, w);
  double whole = 0.0;
  double variance = 0.0;
  double of_set = 0.0;
  for (std::int64_t row = 0; row < n_rows; ++row) {
    double trace = 0.0;
    for (int x = 0; x < 3; ++x) trace += kappa[row][x][x] + inside[row][x][x];
    whole += trace;
    const std::int64_t mode = transport.mode_of_row(row);
    const bool new_set = !transport.options.harmonic.average_degenerate ||
                         run.modes.subspace[mode] == row % run.modes.n_branches;
    if (new_set) {
      variance += of_set * of_set;
      of_set = 0.0;
    }
    if (w[row] > 0.0) of_set += trace / w[row] * error_per_ps(row);
  }
  variance += of_set * of_set;
  return whole > 0.0 ? std::sqrt(variance) / whole : 0.0;
}

void average_errors_over_subspaces(const Modes& modes, const std::vector<std::int32_t>& points,
                                   double* values) {
  const int nb = modes.n_branches;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::int32_t* subspace = &modes.subspace[static_cast<std::size_t>(points[i]) * nb];
    double* error = values + i * static_cast<std::size_t>(nb);
    for (int first = 0, end = 0; first < nb; first = end) {
      double square = 0.0;
      for (end = first; end < nb && subspace[end] == subspace[first]; ++end)
        square += error[end] * error[end];
      for (int s = first; s < end; ++s) error[s] = std::sqrt(square) / (end - first);
    }
  }
}

}  // namespace quasi::thermal
