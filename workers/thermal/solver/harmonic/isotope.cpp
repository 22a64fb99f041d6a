#include "workers/thermal/solver/harmonic/isotope.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "workers/thermal/physics/broadening.hpp"

namespace quasi::thermal {
namespace {

constexpr double kWindow = 2.5;  // of σ'

}  // namespace

std::vector<double> elastic_widths_rad_ps(const Modes& modes, const HarmonicOptions& options) {
  constexpr Spread kStill{0.0, 0.0, 0.0};
  const auto n_modes = static_cast<std::size_t>(modes.n_modes());
  if (options.broadening == Broadening::kFixed)
    return std::vector<double>(n_modes, options.fixed_sigma_rad_ps);
  std::vector<double> width(n_modes);
  std::vector<double> logarithm(n_modes);
  for (std::size_t mode = 0; mode < n_modes; ++mode) {
    width[mode] = std::sqrt(
        pair_width_squared(options.broadening, spread_at(&modes.spread_rad_ps[3 * mode]), kStill));
    logarithm[mode] =
        width[mode] > 0.0 ? std::log(width[mode]) : -std::numeric_limits<double>::infinity();
  }
  std::sort(logarithm.begin(), logarithm.end());
  const auto at = [&](std::size_t percent) {
    return logarithm[std::max<std::size_t>(1, percent * n_modes / 100) - 1];
  };
  const double low = at(25);
  const double high = at(75);
  const double floor = std::exp(low - 1.5 * (high - low));
  for (double& w : width) w = std::max(w, floor);
  return width;
}

std::vector<double> isotope_rates_per_ps(const Crystal& crystal, const Symmetry& symmetry,
                                         const Modes& modes,
                                         const std::vector<double>& width_rad_ps,
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
        const double mismatch = omega - modes.omega_rad_ps[other];
        if (std::fabs(mismatch) >= kWindow * width_rad_ps[other] ||
            !modes.active(other, omega_max_rad_ps))
          continue;
        const std::complex<double>* f = &modes.eigenvector[static_cast<std::size_t>(other * nb)];
        double overlap = 0.0;
        for (int atom = 0; atom < n_atoms; ++atom) {
          std::complex<double> product = 0.0;
          for (int d = 0; d < 3; ++d) product += std::conj(e[3 * atom + d]) * f[3 * atom + d];
          overlap += crystal.g_factor[atom] * std::norm(product);
        }
        sum += gaussian_delta_ps(mismatch, width_rad_ps[other]) * overlap;
      }
      rates[i * nb + s] = units::kPi * omega * omega / (2.0 * static_cast<double>(modes.n_q)) * sum;
    }
  return rates;
}

}  // namespace quasi::thermal
