#include "workers/thermal/solver/four_phonon/precision_check_4ph.hpp"

#include <algorithm>
#include <cmath>

#include "workers/thermal/solver/four_phonon/tile_plan_4ph.hpp"

namespace quasi::thermal {

SampledErrors4ph sample_precision_4ph(const FourPhononOptions& options, const Modes& modes,
                                      const Problem4ph& mixed, ScatteringKernels4ph& kernels) {
  constexpr std::int64_t kTiles = 4;
  const TilePlan4ph plan = plan_tiles_4ph(mixed);
  const std::int64_t tiles = std::min(kTiles, plan.size());
  const auto rates_of = [&](const Problem4ph& problem) {
    kernels.load(problem);
    std::vector<double> total;
    for (std::int64_t i = 0; i < tiles; ++i) {
      const std::int64_t place = (2 * i + 1) * plan.size() / (2 * tiles);
      const auto sums = kernels.sums(plan.first_total(place), plan.last_total(place));
      total.resize(sums.size());
      for (std::size_t v = 0; v < sums.size(); ++v) total[v] += sums[v];
    }
    Rates4ph rates = rates_of_sums_4ph(problem, options.constants, total);
    if (options.average_degenerate) average_degenerate_4ph(modes, problem.point, rates);
    return rates;
  };
  Problem4ph exact = mixed;
  exact.precision = Precision::kDouble;
  const Rates4ph of_exact = rates_of(exact);
  const Rates4ph of_mixed = rates_of(mixed);
  SampledErrors4ph errors{.tiles = tiles, .relative = {}};
  for (int t = 0; t < of_exact.n_temperatures; ++t) {
    double largest = 0.0;
    for (std::int64_t row = 0; row < of_exact.n_rows; ++row)
      largest = std::max(largest, of_exact.total_per_ps(t, row));
    for (std::int64_t row = 0; row < of_exact.n_rows; ++row) {
      const double w = of_exact.total_per_ps(t, row);
      errors.relative.push_back(
          w > kVanishingRate * largest ? of_mixed.total_per_ps(t, row) / w - 1.0 : 0.0);
    }
  }
  return errors;
}

PrecisionError measure_precision_4ph(const ConductivityRun& run, const Rates4ph& rates,
                                     const SampledErrors4ph& errors) {
  PrecisionError result{.sampled_rows = rates.n_rows};
  double squares = 0.0;
  for (int t = 0; t < rates.n_temperatures; ++t) {
    const TemperatureResult& at = run.by_temperature[static_cast<std::size_t>(t)];
    double change = 0.0, kappa = 0.0;
    for (std::int64_t row = 0; row < rates.n_rows; ++row) {
      const auto r = static_cast<std::size_t>(row);
      const double relative = errors.relative[static_cast<std::size_t>(t * rates.n_rows + row)];
      result.largest_rate_error = std::max(result.largest_rate_error, std::fabs(relative));
      squares += relative * relative;
      const Mat3& k = at.mode_kappa_rta[r];
      const double trace = k[0][0] + k[1][1] + k[2][2];
      kappa += trace;
      if (at.rate_per_ps[r] > 0.0)
        change += trace * relative * rates.total_per_ps(t, row) / at.rate_per_ps[r];
    }
    if (kappa > 0.0) result.kappa_error = std::max(result.kappa_error, std::fabs(change / kappa));
  }
  result.rms_rate_error = std::sqrt(squares / static_cast<double>(errors.relative.size()));
  return result;
}

}  // namespace quasi::thermal
