#include "workers/thermal/solver/transport/sweep.hpp"

#include <utility>

namespace quasi::thermal {

Sweep run_sweep(const BteTerms& terms, ConductivityRun& run, const RunSite& site) {
  const TransportOptions& options = terms.transport.options;
  const auto& [isotope_factors, grain_sizes_nm] = options.sweep;
  Sweep sweep;
  if (isotope_factors.empty() && grain_sizes_nm.empty()) return sweep;
  sweep.isotope_factor = isotope_factors.empty() ? std::vector<double>{1.0} : isotope_factors;
  sweep.grain_size_nm = grain_sizes_nm.empty() ? std::vector<double>{0.0} : grain_sizes_nm;
  const std::size_t n_t = options.temperatures_k.size();
  const std::size_t n = sweep.isotope_factor.size() * sweep.grain_size_nm.size() * n_t;
  sweep.kappa_rta_w_per_mk.resize(n);
  if (options.iteration.enabled) sweep.kappa_w_per_mk.resize(n);
  std::vector<double> isotopes = run.isotope_per_ps;
  std::vector<double> boundary = run.boundary_per_ps;
  std::int64_t done = 0;
  // The four-phonon operator is kept for one temperature at a time, and at first for the last one.
  // Temperatures are therefore the outermost loop, from the last.
  for (std::size_t t = n_t; t-- > 0;)
    for (std::size_t i = 0; i < sweep.isotope_factor.size(); ++i)
      for (std::size_t g = 0; g < sweep.grain_size_nm.size(); ++g) {
        site.progress.report("sweep", done++, static_cast<std::int64_t>(n));
        for (std::size_t row = 0; row < isotopes.size(); ++row)
          run.isotope_per_ps[row] = sweep.isotope_factor[i] * isotopes[row];
        run.boundary_per_ps = sweep.grain_size_nm[g] > 0.0
                                  ? boundary_rates_per_ps(terms.transport, sweep.grain_size_nm[g])
                                  : boundary;
        const TemperatureResult r = conductivity_at(t, terms, run, site);
        const std::size_t at = (i * sweep.grain_size_nm.size() + g) * n_t + t;
        sweep.kappa_rta_w_per_mk[at] = r.kappa_rta_w_per_mk;
        if (r.converged) sweep.kappa_w_per_mk[at] = r.kappa_w_per_mk;
      }
  site.progress.report("sweep", static_cast<std::int64_t>(n), static_cast<std::int64_t>(n));
  run.isotope_per_ps = std::move(isotopes);
  run.boundary_per_ps = std::move(boundary);
  return sweep;
}

}  // namespace quasi::thermal
