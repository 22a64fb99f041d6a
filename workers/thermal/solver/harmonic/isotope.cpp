#include "workers/thermal/solver/harmonic/isotope.hpp"

#include <algorithm>
#include <cmath>
#include <complex>

namespace quasi::thermal {

std::vector<double> isotope_rates_per_ps(const Crystal& crystal, const Symmetry& symmetry,
                                         const Modes& modes, const ElasticDelta& delta,
                                         double omega_max_rad_ps) {
  const int nb = modes.n_branches;
  const int n_atoms = crystal.n_atoms();
  std::vector<double> rates(static_cast<std::size_t>(symmetry.n_irreducible() * nb), 0.0);
  const bool pure = std::all_of(crystal.g_factor.begin(), crystal.g_factor.end(),
                                [](double g) { return g == 0.0; });
  if (pure) return rates;
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < symmetry.n_irreducible(); ++i)
    for (int s = 0; s < nb; ++s) {
      const std::int64_t mode = static_cast<std::int64_t>(symmetry.irreducible[i]) * nb + s;
      if (!modes.active(mode, omega_max_rad_ps)) continue;
      const double omega = modes.omega_rad_ps[mode];
      const std::complex<double>* e = &modes.eigenvector[static_cast<std::size_t>(mode * nb)];
      double sum = 0.0;
      for (std::int64_t other = 0; other < modes.n_modes(); ++other) {
        if (!modes.active(other, omega_max_rad_ps)) continue;
        const double weight_ps = delta(omega, other);
        if (weight_ps == 0.0) continue;
        const std::complex<double>* f = &modes.eigenvector[static_cast<std::size_t>(other * nb)];
        double overlap = 0.0;
        for (int atom = 0; atom < n_atoms; ++atom) {
          std::complex<double> product = 0.0;
          for (int d = 0; d < 3; ++d) product += std::conj(e[3 * atom + d]) * f[3 * atom + d];
          overlap += crystal.g_factor[atom] * std::norm(product);
        }
        sum += weight_ps * overlap;
      }
      rates[i * nb + s] = units::kPi * omega * omega / (2.0 * static_cast<double>(modes.n_q)) * sum;
    }
  return rates;
}

}  // namespace quasi::thermal
