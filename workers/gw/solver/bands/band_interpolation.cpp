#include "workers/gw/solver/bands/band_interpolation.hpp"

#include <lapacke.h>

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

constexpr std::size_t kStarsPerPoint = 30;

/// One lattice vector of each star, sorted by length, with R = 0 first.
struct Star {
  IVec3 r{};
  double length2 = 0.0;
};
std::vector<Star> stars_of(const MeanField& field, std::size_t wanted) {
  const auto& operations = field.zone.operations();
  const Mat3& adot = field.crystal().adot;
  for (int reach = 4;; reach += 2) {
    std::vector<Star> all;
    for (int i = -reach; i <= reach; ++i)
      for (int j = -reach; j <= reach; ++j)
        for (int k = -reach; k <= reach; ++k) {
          const IVec3 r{i, j, k};
          // The lexicographically largest vector represents its star, because (S k)·R = k·(Sᵀ R).
          bool represents = true;
          for (const SymmetryOperation& s : operations) {
            IVec3 other{};
            for (int a = 0; a < 3; ++a)
              for (int b = 0; b < 3; ++b) other[a] += s.rotation[b][a] * r[b];
            represents = represents && !(other > r) && !(-other > r);
          }
          if (represents) all.push_back({r, metric_dot(adot, to_real(r), to_real(r))});
        }
    std::stable_sort(all.begin(), all.end(),
                     [](const Star& a, const Star& b) { return a.length2 < b.length2 - 1e-9; });
    // Beyond the inscribed sphere of the box some stars are missing.
    double complete = 1e300;
    for (int a = 0; a < 3; ++a) {
      // Distance of the plane r_a = reach + 1 from the origin, in the metric of the lattice:
      // 1/√((adot⁻¹)_aa) = 2π/√(bdot_aa).
      complete =
          std::min(complete, std::pow((reach + 1) * 2.0 * kPi, 2) / field.crystal().bdot[a][a]);
    }
    if (all.size() < wanted || all[wanted - 1].length2 > complete) continue;
    all.resize(wanted);
    return all;
  }
}

double star_function(const MeanField& field, const Star& star, const Vec3& k) {
  double sum = 0.0;
  for (const SymmetryOperation& s : field.zone.operations())
    sum += std::cos(2.0 * kPi * dot(multiply(s.rotation, k), to_real(star.r)));
  return sum / static_cast<double>(field.zone.operations().size());
}

/// Returns ρ(R) = (1 − ¾ R²/R₁²)² + ¾ (R/R₁)⁶, with the shortest R₁.
double roughness(double length2, double shortest2) {
  const double x = length2 / shortest2;
  return (1.0 - 0.75 * x) * (1.0 - 0.75 * x) + 0.75 * x * x * x;
}

}  // namespace

PathBands points_of(const BandPath& path, const Crystal& crystal) {
  PathBands result;
  double distance = 0.0;
  for (std::size_t c = 0; c + 1 < path.corners.size(); ++c) {
    const Vec3 along = path.corners[c + 1] - path.corners[c];
    const double length = std::sqrt(metric_dot(crystal.bdot, along, along));
    const bool last = c + 2 == path.corners.size();
    for (int i = 0; i < path.points_per_segment + (last ? 1 : 0); ++i) {
      const double t = static_cast<double>(i) / path.points_per_segment;
      result.k.push_back(path.corners[c] + t * along);
      result.distance_per_bohr.push_back(distance + t * length);
    }
    distance += length;
  }
  return result;
}

PathBands interpolate_bands(const MeanField& field,
                            const std::vector<std::vector<double>>& energy_ev,
                            const BandPath& path) {
  const std::vector<Vec3>& points = field.waves.k;
  const std::size_t n_k = points.size(), n_bands = energy_ev.size();
  if (n_k < 2) throw InvalidInput("a band path needs a grid of at least two irreducible k-points");
  const std::vector<Star> stars = stars_of(field, kStarsPerPoint * n_k);
  const std::size_t n = n_k - 1;
  // Differences of star functions from those at the last point, over the roughness.
  std::vector<double> d(stars.size() * n), at_last(stars.size());
  for (std::size_t m = 1; m < stars.size(); ++m) {
    at_last[m] = star_function(field, stars[m], points[n]);
    for (std::size_t j = 0; j < n; ++j)
      d[m * n + j] = star_function(field, stars[m], points[j]) - at_last[m];
  }
  std::vector<double> h(n * n), right(n * n_bands);
  for (std::size_t m = 1; m < stars.size(); ++m) {
    const double rho = roughness(stars[m].length2, stars[1].length2);
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t l = 0; l < n; ++l) h[j * n + l] += d[m * n + j] * d[m * n + l] / rho;
  }
  for (std::size_t b = 0; b < n_bands; ++b)
    for (std::size_t j = 0; j < n; ++j) right[b * n + j] = energy_ev[b][j] - energy_ev[b][n];
  if (LAPACKE_dposv(LAPACK_COL_MAJOR, 'L', static_cast<lapack_int>(n),
                    static_cast<lapack_int>(n_bands), h.data(), static_cast<lapack_int>(n),
                    right.data(), static_cast<lapack_int>(n)) != 0)
    throw NotConverged("the star functions of the band path do not distinguish the k-points");
  std::vector<double> a(stars.size() * n_bands);
  for (std::size_t b = 0; b < n_bands; ++b) {
    a[b] = energy_ev[b][n];
    for (std::size_t m = 1; m < stars.size(); ++m) {
      double sum = 0.0;
      for (std::size_t j = 0; j < n; ++j) sum += right[b * n + j] * d[m * n + j];
      a[m * n_bands + b] = sum / roughness(stars[m].length2, stars[1].length2);
      a[b] -= a[m * n_bands + b] * at_last[m];
    }
  }
  PathBands result = points_of(path, field.crystal());
  result.energy_ev.resize(n_bands);
  for (const Vec3& k : result.k) {
    std::vector<double> sum(n_bands);
    for (std::size_t m = 0; m < stars.size(); ++m) {
      const double s = star_function(field, stars[m], k);
      for (std::size_t b = 0; b < n_bands; ++b) sum[b] += a[m * n_bands + b] * s;
    }
    for (std::size_t b = 0; b < n_bands; ++b) result.energy_ev[b].push_back(sum[b]);
  }
  return result;
}

}  // namespace quasi::gw
