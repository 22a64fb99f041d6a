#include "workers/thermal/solver/harmonic/elastic_delta.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "workers/thermal/physics/broadening.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/solver/harmonic/reduced_lattice.hpp"

namespace quasi::thermal {
namespace {

constexpr double kWindow = 2.5;  // of σ'

/// Distance from ω at which weights of tetrahedra are taken. Modes of a star lie exactly on the
/// shell of each other, where a weight may jump and rounding would choose its side.
constexpr double kOffShell_rad_ps = 1e-6;

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

ElasticDelta::ElasticDelta(const Crystal& crystal, const QMesh& mesh, const Modes& modes,
                           const HarmonicOptions& options)
    : modes_(modes) {
  if (options.broadening == Broadening::kTetrahedra)
    add_tetrahedra(crystal, mesh);
  else
    width_ = elastic_widths_rad_ps(modes, options);
}

void ElasticDelta::add_tetrahedra(const Crystal& crystal, const QMesh& mesh) {
  shapes_ = MeshTetrahedra(obtuse_superbases(mesh_steps_per_nm(crystal, mesh)));
  neighbours_ = shapes_.neighbours(mesh);
  tied_ = tied_branches(modes_);
  tetrahedra_ = shapes_.view(modes_.omega_rad_ps.data(), neighbours_.data(), tied_.data(),
                             shapes_.corners.data(), modes_.n_branches);
  const int nb = modes_.n_branches;
  const auto n_points = static_cast<std::int64_t>(shapes_.point.size());
  lowest_.assign(static_cast<std::size_t>(modes_.n_modes()),
                 std::numeric_limits<double>::infinity());
  highest_.assign(lowest_.size(), -std::numeric_limits<double>::infinity());
  // Tied branches share their weights, and so their ranges.
  for (std::int64_t mode = 0; mode < modes_.n_modes(); ++mode)
    for (std::int64_t i = 0; i < n_points; ++i) {
      const std::int64_t near = neighbours_[mode / nb * n_points + i];
      const double omega = modes_.omega_rad_ps[near * nb + mode % nb];
      const std::int64_t first = mode / nb * nb + tied_[mode];
      lowest_[first] = std::min(lowest_[first], omega);
      highest_[first] = std::max(highest_[first], omega);
    }
}

double ElasticDelta::operator()(double omega_rad_ps, std::int64_t mode) const {
  if (width_.empty()) {
    const std::int64_t first = mode / modes_.n_branches * modes_.n_branches + tied_[mode];
    if (omega_rad_ps < lowest_[first] - kOffShell_rad_ps ||
        omega_rad_ps > highest_[first] + kOffShell_rad_ps)
      return 0.0;
    return 0.5 * (tetrahedra_.density_ps(omega_rad_ps - kOffShell_rad_ps, mode) +
                  tetrahedra_.density_ps(omega_rad_ps + kOffShell_rad_ps, mode));
  }
  const double mismatch = omega_rad_ps - modes_.omega_rad_ps[mode];
  if (std::fabs(mismatch) >= kWindow * width_[mode]) return 0.0;
  return gaussian_delta_ps(mismatch, width_[mode]);
}

}  // namespace quasi::thermal
