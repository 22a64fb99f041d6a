#include "workers/thermal/solver/sweep.hpp"

#include <utility>

namespace quasi::thermal {

Sweep run_sweep(const Deck& deck, ThreePhononSums& kernels, const FurtherScattering& further, ConductivityRun& run,
                Progress& progress) {
  const Control& control = deck.control;
  Sweep sweep;
  if (control.isotope_factors.empty() && control.grain_sizes_nm.empty()) return sweep;
  sweep.isotope_factor = control.isotope_factors.empty() ? std::vector<double>{1.0} : control.isotope_factors;
  sweep.grain_size_nm = control.grain_sizes_nm.empty() ? std::vector<double>{0.0} : control.grain_sizes_nm;
  const Transport transport{deck.crystal, deck.symmetry, run.modes, control};
  const auto n = static_cast<std::int64_t>(sweep.isotope_factor.size() * sweep.grain_size_nm.size());
  std::vector<double> isotopes = run.isotope_per_ps;
  std::vector<double> boundary = run.boundary_per_ps;
  std::vector<TemperatureResult> results;
  std::swap(results, run.by_temperature);
  std::int64_t done = 0;
  for (const double factor : sweep.isotope_factor)
    for (const double grain : sweep.grain_size_nm) {
      progress.report("sweep", done++, n);
      for (std::size_t row = 0; row < isotopes.size(); ++row) run.isotope_per_ps[row] = factor * isotopes[row];
      if (grain > 0.0) run.boundary_per_ps = boundary_rates_per_ps(transport, grain);
      run.by_temperature.clear();
      add_conductivity(deck, kernels, further, run, progress);
      for (const TemperatureResult& r : run.by_temperature) {
        sweep.kappa_rta_w_per_mk.push_back(r.kappa_rta_w_per_mk);
        if (r.converged) sweep.kappa_w_per_mk.push_back(r.kappa_w_per_mk);
      }
    }
  progress.report("sweep", n, n);
  std::swap(results, run.by_temperature);
  run.isotope_per_ps = std::move(isotopes);
  run.boundary_per_ps = std::move(boundary);
  return sweep;
}

}  // namespace quasi::thermal
