#include "workers/thermal/solver/three_phonon/precision_check.hpp"

#include <algorithm>
#include <cmath>

#include "workers/thermal/solver/three_phonon/scattering.hpp"

namespace quasi::thermal {

PrecisionError measure_precision(const TransportOptions& options, const ThreePhononProblem& problem,
                                 const ConductivityRun& run, const Device& device) {
  constexpr std::size_t kPoints = 12;
  ThreePhononProblem exact = problem;
  exact.precision = Precision::kDouble;
  exact.rows.clear();
  std::vector<std::size_t> place;  // of the sampled points among all
  const std::size_t n = std::min(kPoints, problem.rows.size());
  for (std::size_t i = 0; i < n; ++i) {
    place.push_back(i * problem.rows.size() / n);
    exact.rows.push_back(problem.rows[place.back()]);
  }
  const auto kernels = make_three_phonon_kernels(device);
  kernels->load(exact);
  SilentProgress silent;
  ThreePhononRates rates = kernels->rates(options.temperatures_k, false, silent);
  const auto nb = static_cast<std::size_t>(run.modes.n_branches);
  const std::size_t n_sampled = n * nb;
  PrecisionError error{.sampled_rows = static_cast<std::int64_t>(n_sampled)};
  double squares = 0.0;
  double count = 0.0;
  for (std::size_t t = 0; t < options.temperatures_k.size(); ++t) {
    double* absorption = &rates.absorption_per_ps[t * n_sampled];
    double* emission = &rates.emission_per_ps[t * n_sampled];
    if (options.harmonic.average_degenerate) {
      average_over_subspaces(run.modes, exact.rows, 1, absorption);
      average_over_subspaces(run.modes, exact.rows, 1, emission);
    }
    double change = 0.0;
    double kappa = 0.0;
    double largest = 0.0;
    for (std::size_t row = 0; row < n_sampled; ++row)
      largest = std::max(largest, absorption[row] + emission[row]);
    for (std::size_t row = 0; row < n_sampled; ++row) {
      const std::size_t whole = place[row / nb] * nb + row % nb;
      const std::size_t at = t * run.by_temperature[t].rate_per_ps.size() + whole;
      const double w = absorption[row] + emission[row];
      if (!(w > kVanishingRate * largest)) continue;
      const double mixed =
          run.three_phonon.absorption_per_ps[at] + run.three_phonon.emission_per_ps[at];
      const double relative = mixed / w - 1.0;
      error.largest_rate_error = std::max(error.largest_rate_error, std::fabs(relative));
      squares += relative * relative;
      count += 1.0;
      const Mat3& k = run.by_temperature[t].mode_kappa_rta[whole];
      const double trace = k[0][0] + k[1][1] + k[2][2];
      kappa += trace;
      change += trace * (mixed - w) / run.by_temperature[t].rate_per_ps[whole];
    }
    if (kappa > 0.0) error.kappa_error = std::max(error.kappa_error, std::fabs(change / kappa));
  }
  if (count > 0.0) error.rms_rate_error = std::sqrt(squares / count);
  return error;
}

}  // namespace quasi::thermal
