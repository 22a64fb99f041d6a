#include "workers/thermal/solver/harmonic/dispersion.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include "workers/thermal/solver/harmonic/canonical_vectors.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"

namespace quasi::thermal {
namespace {

using Complex64 = std::complex<double>;

bool is_gamma(const Vec3& q) {
  for (const double x : q)
    if (std::fabs(x - std::round(x)) > 1e-9) return false;
  return true;
}

/// Places the points of a path.
Dispersion place_points(const PathOptions& path, const Crystal& crystal) {
  Dispersion result{.n_branches = crystal.n_branches()};
  const Mat3 to_cartesian = transpose(crystal.reciprocal_per_nm());
  double distance = 0.0;
  for (std::size_t v = 1; v < path.vertices.size(); ++v) {
    const PathVertex &from = path.vertices[v - 1], &to = path.vertices[v];
    if (to.starts) continue;
    const Vec3 step = to.q - from.q;
    const double length_per_nm = length(to_cartesian * step);
    const std::int64_t segment = result.segment.empty() ? 0 : result.segment.back() + 1;
    for (int i = 0; i < path.points; ++i) {
      const double share = static_cast<double>(i) / (path.points - 1);
      if (i == 0 || i == path.points - 1) {
        result.vertex_point.push_back(result.n_points());
        result.vertex_label.push_back(i == 0 ? from.label : to.label);
      }
      result.q_fractional.push_back(i == path.points - 1 ? to.q : from.q + share * step);
      result.distance_per_nm.push_back(distance + share * length_per_nm);
      result.segment.push_back(segment);
    }
    distance += length_per_nm;
  }
  return result;
}

/// The modes of one point of a path.
struct PointModes {
  std::vector<double> omega;       ///< [nb]
  std::vector<double> velocity;    ///< [nb][3]
  std::vector<Complex64> vectors;  ///< [nb][nb] with the phases of atomic positions
};

bool has_charges(const Crystal& crystal) {
  for (const Mat3& z : crystal.born)
    for (const Vec3& row : z)
      if (dot(row, row) > 0.0) return true;
  return false;
}

/// Sets ω of the three translations at Γ to zero, and all velocities, which vanish there.
void finish_gamma(PointModes& modes) {
  std::vector<std::size_t> order(modes.omega.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::fabs(modes.omega[a]) < std::fabs(modes.omega[b]);
  });
  for (std::size_t i = 0; i < 3; ++i) modes.omega[order[i]] = 0.0;
  std::fill(modes.velocity.begin(), modes.velocity.end(), 0.0);
}

/// Solves at q. @param towards  direction of the segment, which Γ of a polar crystal needs
PointModes solve_point(const Crystal& crystal, const DynamicalMatrixBuilder& builder,
                       const HarmonicOptions& options, const Vec3& q, const Vec3& towards) {
  constexpr double kAside_per_nm = 1e-4;
  const int nb = crystal.n_branches();
  const bool gamma = is_gamma(q);
  const double reach = length(transpose(crystal.reciprocal_per_nm()) * towards);
  const bool aside = gamma && options.nonanalytic && has_charges(crystal);
  const Vec3 at = aside ? q + (kAside_per_nm / reach) * towards : q;
  const DynamicalMatrix matrix = builder.at(at, true);
  PointModes modes{.omega = std::vector<double>(static_cast<std::size_t>(nb)),
                   .velocity = std::vector<double>(static_cast<std::size_t>(3 * nb), 0.0),
                   .vectors = std::vector<Complex64>(static_cast<std::size_t>(nb * nb))};
  diagonalise_hermitian(nb, matrix.d, modes.omega.data(), modes.vectors.data());
  for (double& w : modes.omega) w = std::copysign(std::sqrt(std::fabs(w)), w);
  for (int first = 0, last = 0; first < nb; first = last) {
    last = first + 1;
    while (last < nb && modes.omega[last] - modes.omega[last - 1] < options.degeneracy_rad_ps)
      ++last;
    for (int g = 0; g < 3; ++g) {
      double sum = 0.0;
      for (int s = first; s < last; ++s)
        if (modes.omega[s] > 0.0)
          sum +=
              matrix_element(nb, &modes.vectors[s * nb], matrix.gradient[g], &modes.vectors[s * nb])
                  .real() /
              (2.0 * modes.omega[s]);
      for (int s = first; s < last; ++s) modes.velocity[3 * s + g] = sum / (last - first);
    }
  }
  for (int atom = 0; atom < crystal.n_atoms(); ++atom) {
    const Complex64 phase = std::polar(1.0, -2.0 * units::kPi * dot(at, crystal.position[atom]));
    for (int s = 0; s < nb; ++s)
      for (int a = 0; a < 3; ++a) modes.vectors[s * nb + 3 * atom + a] *= phase;
  }
  if (gamma) finish_gamma(modes);
  return modes;
}

/// Returns |e†e'|² of the modes of two points, [before][after].
std::vector<double> overlaps(int nb, const PointModes& before, const PointModes& after) {
  std::vector<double> result(static_cast<std::size_t>(nb * nb));
  for (int s = 0; s < nb; ++s)
    for (int t = 0; t < nb; ++t) {
      Complex64 sum = 0.0;
      for (int e = 0; e < nb; ++e)
        sum += std::conj(before.vectors[s * nb + e]) * after.vectors[t * nb + e];
      result[static_cast<std::size_t>(s * nb + t)] = std::norm(sum);
    }
  return result;
}

}  // namespace

std::vector<int> best_assignment(int n, const std::vector<double>& weight) {
  // Rows are added one by one. Each search finds the cheapest alternating path with the potentials
  // u and v, where the cost is the negative weight.
  const double none = std::numeric_limits<double>::infinity();
  const auto size = static_cast<std::size_t>(n) + 1;
  std::vector<double> u(size, 0.0), v(size, 0.0);
  std::vector<int> row_of(size, 0), way(size, 0);
  for (int row = 1; row <= n; ++row) {
    std::vector<double> least(size, none);
    std::vector<char> used(size, 0);
    int column = 0;
    row_of[0] = row;
    do {
      used[column] = 1;
      const int here = row_of[column];
      double delta = none;
      int next = 0;
      for (int c = 1; c <= n; ++c) {
        if (used[c]) continue;
        const double reduced = -weight[(here - 1) * n + c - 1] - u[here] - v[c];
        if (reduced < least[c]) {
          least[c] = reduced;
          way[c] = column;
        }
        if (least[c] < delta) {
          delta = least[c];
          next = c;
        }
      }
      for (int c = 0; c <= n; ++c) {
        if (used[c]) {
          u[row_of[c]] += delta;
          v[c] -= delta;
        } else {
          least[c] -= delta;
        }
      }
      column = next;
    } while (row_of[column] != 0);
    for (; column != 0; column = way[column]) row_of[column] = row_of[way[column]];
  }
  std::vector<int> result(static_cast<std::size_t>(n));
  for (int c = 1; c <= n; ++c) result[static_cast<std::size_t>(row_of[c] - 1)] = c - 1;
  return result;
}

Dispersion dispersion_along(const PathOptions& path, const Crystal& crystal,
                            const SecondOrder& constants, const HarmonicOptions& options) {
  Dispersion result = place_points(path, crystal);
  const DynamicalMatrixBuilder builder(crystal, constants, options);
  const int nb = result.n_branches;
  PointModes before;
  std::vector<std::int32_t> band(static_cast<std::size_t>(nb));
  for (std::int64_t i = 0; i < result.n_points(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool ends = i + 1 == result.n_points() || result.segment[at + 1] != result.segment[at];
    const std::size_t other = ends ? at - 1 : at + 1;
    PointModes modes = solve_point(crystal, builder, options, result.q_fractional[at],
                                   static_cast<double>(path.points - 1) *
                                       (result.q_fractional[other] - result.q_fractional[at]));
    const bool continues =
        i > 0 && length(result.q_fractional[at] - result.q_fractional[at - 1]) *
                         (result.segment[at] != result.segment[at - 1] ? 1.0 : 0.0) <
                     1e-9;
    if (continues) {
      const auto next = best_assignment(nb, overlaps(nb, before, modes));
      std::vector<std::int32_t> moved(band.size());
      for (int s = 0; s < nb; ++s) moved[next[s]] = band[s];
      band = std::move(moved);
    } else {
      std::iota(band.begin(), band.end(), 0);
    }
    result.omega_rad_ps.insert(result.omega_rad_ps.end(), modes.omega.begin(), modes.omega.end());
    result.velocity_km_s.insert(result.velocity_km_s.end(), modes.velocity.begin(),
                                modes.velocity.end());
    result.band.insert(result.band.end(), band.begin(), band.end());
    before = std::move(modes);
  }
  return result;
}

std::vector<double> rates_along(const Dispersion& dispersion, const Transport& transport,
                                const std::vector<double>& rate_per_ps) {
  const QMesh& mesh = transport.symmetry.mesh;
  const int nb = dispersion.n_branches;
  std::vector<double> result(dispersion.omega_rad_ps.size(), 0.0);
  for (std::int64_t point = 0; point < dispersion.n_points(); ++point) {
    std::vector<double> sum(static_cast<std::size_t>(nb), 0.0), weights = sum;
    for (int corner = 0; corner < 8; ++corner) {
      double weight = 1.0;
      std::int64_t number = 0, stride = 1;
      for (int d = 0; d < 3; ++d) {
        double x = dispersion.q_fractional[static_cast<std::size_t>(point)][d] * mesh.n[d];
        if (std::fabs(x - std::round(x)) < 1e-9) x = std::round(x);
        const auto low = static_cast<std::int64_t>(std::floor(x));
        const int up = corner >> d & 1;
        weight *= up == 1 ? x - static_cast<double>(low) : 1.0 - x + static_cast<double>(low);
        number += stride * (((low + up) % mesh.n[d] + mesh.n[d]) % mesh.n[d]);
        stride *= mesh.n[d];
      }
      if (number == 0 || weight <= 0.0) continue;
      const std::int64_t first =
          static_cast<std::int64_t>(transport.symmetry.star_of[static_cast<std::size_t>(number)]) *
          nb;
      for (int s = 0; s < nb; ++s) {
        const double rate = rate_per_ps[static_cast<std::size_t>(first + s)];
        if (rate <= 0.0) continue;
        sum[s] += weight * std::log(rate);
        weights[s] += weight;
      }
    }
    for (int s = 0; s < nb; ++s)
      if (weights[s] > 0.0)
        result[static_cast<std::size_t>(point * nb + s)] = std::exp(sum[s] / weights[s]);
  }
  return result;
}

}  // namespace quasi::thermal
