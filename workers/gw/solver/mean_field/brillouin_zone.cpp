#include "workers/gw/solver/mean_field/brillouin_zone.hpp"

#include <algorithm>
#include <cstdio>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/physics/spinor.hpp"

namespace quasi::gw {
namespace {

constexpr double kSamePoint = 1e-6;

bool same_point(const Vec3& a, const Vec3& b) {
  IVec3 g;
  return nearest_lattice_point(a - b, &g, kSamePoint);
}

std::string text(const Vec3& v) {
  char buffer[80];
  std::snprintf(buffer, sizeof buffer, "(%.6f, %.6f, %.6f)", v[0], v[1], v[2]);
  return buffer;
}

/// Writes factor(G) U c(G) of some bands, [n_bands][2][n_pw].
void rotate_spinors(const SpinMatrix& u, const std::vector<std::complex<double>>& factor,
                    const std::complex<double>* c, std::vector<std::complex<double>>& to) {
  const std::size_t n_pw = factor.size(), n_bands = to.size() / (2 * n_pw);
#pragma omp parallel for schedule(static)
  for (std::size_t n = 0; n < n_bands; ++n)
    for (std::size_t i = 0; i < n_pw; ++i) {
      const std::complex<double> up = factor[i] * c[2 * n * n_pw + i],
                                 down = factor[i] * c[(2 * n + 1) * n_pw + i];
      to[2 * n * n_pw + i] = u[0][0] * up + u[0][1] * down;
      to[(2 * n + 1) * n_pw + i] = u[1][0] * up + u[1][1] * down;
    }
}

}  // namespace

BrillouinZone::BrillouinZone(std::vector<Vec3> irreducible,
                             std::vector<SymmetryOperation> operations, std::int64_t expected,
                             const std::string& what)
    : what_(what), irreducible_(std::move(irreducible)), operations_(std::move(operations)) {
  for (std::size_t r = 0; r < irreducible_.size(); ++r) {
    if (index_of(irreducible_[r]) >= 0)
      throw InvalidInput(what_ + ": k-point " + std::to_string(r + 1) + " " +
                         text(irreducible_[r]) +
                         " follows from an earlier one by symmetry; the list must be irreducible");
    // The identity comes first, so that a listed point is itself and not a rotated copy.
    points_.push_back({folded(irreducible_[r]), static_cast<int>(r), 0});
    for (std::size_t s = 0; s < operations_.size(); ++s)
      if (operations_[s].rotation == IMat3{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}} &&
          dot(operations_[s].translation, operations_[s].translation) < 1e-12) {
        points_.back().operation = static_cast<int>(s);
        break;
      }
    for (std::size_t s = 0; s < operations_.size(); ++s) {
      const Vec3 k = folded(multiply(operations_[s].rotation, irreducible_[r]));
      if (index_of(k) < 0) points_.push_back({k, static_cast<int>(r), static_cast<int>(s)});
    }
  }
  if (expected > 0 && size() != expected)
    throw InvalidInput(what_ + ": " + std::to_string(irreducible_.size()) + " k-points and " +
                       std::to_string(operations_.size()) + " operations give " +
                       std::to_string(size()) + " points, the grid has " +
                       std::to_string(expected) +
                       "; is a k-point missing, or was the list reduced by time reversal? Rerun "
                       "the mean field with "
                       "time reversal off");
}

std::int64_t BrillouinZone::index_of(const Vec3& f) const {
  for (std::size_t i = 0; i < points_.size(); ++i)
    if (same_point(points_[i].k, f)) return static_cast<std::int64_t>(i);
  return -1;
}

Rotation BrillouinZone::rotation_to(const Vec3& f) const {
  const std::int64_t index = index_of(f);
  if (index < 0)
    throw InvalidInput(what_ + " has no point equivalent to " + text(f) +
                       "; is the grid Γ-centred and complete?");
  const ZonePoint& point = points_[static_cast<std::size_t>(index)];
  Rotation rotation{point.irreducible, point.operation, {}};
  const Vec3 from = multiply(operations_[static_cast<std::size_t>(point.operation)].rotation,
                             irreducible_[static_cast<std::size_t>(point.irreducible)]);
  nearest_lattice_point(f - from, &rotation.umklapp, 1e-4);
  return rotation;
}

std::vector<int> little_group(const std::vector<SymmetryOperation>& operations, const Vec3& q,
                              bool exact) {
  std::vector<int> group;
  for (std::size_t s = 0; s < operations.size(); ++s) {
    IVec3 g{};
    const Vec3 d = multiply(operations[s].rotation, q) - q;
    if (nearest_lattice_point(d, &g, exact ? 1e-9 : kSamePoint) && (!exact || g == IVec3{}))
      group.push_back(static_cast<int>(s));
  }
  return group;
}

std::vector<Orbit> orbits(const BrillouinZone& zone, const std::vector<int>& group,
                          const std::vector<char>& preferred) {
  const auto& points = zone.points();
  std::vector<char> seen(points.size(), 0);
  std::vector<Orbit> result;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (seen[i]) continue;
    Orbit orbit{static_cast<std::int64_t>(i), 0};
    bool found_preferred = !preferred.empty() && preferred[i];
    for (const int s : group) {
      const std::int64_t j = zone.index_of(
          multiply(zone.operations()[static_cast<std::size_t>(s)].rotation, points[i].k));
      if (j < 0)
        throw InvalidInput("the q-grid is not mapped onto itself by the crystal's symmetry");
      const auto at = static_cast<std::size_t>(j);
      if (seen[at]) continue;
      seen[at] = 1;
      ++orbit.size;
      if (!found_preferred && !preferred.empty() && preferred[at]) {
        found_preferred = true;
        orbit.representative = j;
      }
    }
    result.push_back(orbit);
  }
  return result;
}

RotatedWaves rotated_waves(const Wavefunctions& waves,
                           const std::vector<SymmetryOperation>& operations,
                           const Rotation& rotation, int spin, int band_begin, int band_end) {
  const KPointWaves& from = waves.waves[static_cast<std::size_t>(rotation.irreducible)];
  const SymmetryOperation& s = operations[static_cast<std::size_t>(rotation.operation)];
  const std::size_t n_pw = from.g.size();
  RotatedWaves result;
  result.g.resize(n_pw);
  std::vector<std::complex<double>> factor(n_pw);
  bool unchanged = true;
  for (std::size_t i = 0; i < n_pw; ++i) {
    const IVec3 sg = multiply(s.rotation, from.g[i]);
    result.g[i] = sg - rotation.umklapp;
    factor[i] = std::polar(1.0, -dot(to_real(sg), s.translation));
    unchanged = unchanged && factor[i] == 1.0;
  }
  const auto n_bands = static_cast<std::size_t>(band_end - band_begin);
  const std::size_t row = n_pw * static_cast<std::size_t>(waves.header.n_spinor);
  const std::complex<double>* c = from.coefficients[static_cast<std::size_t>(spin)].part(
      static_cast<std::size_t>(band_begin) * row, n_bands * row);
  const IMat3 identity{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  if (waves.header.n_spinor == 2 && !(unchanged && s.rotation == identity)) {
    result.own.resize(n_bands * row);
    rotate_spinors(spin_rotation(cartesian_rotation(waves.header.crystal, s.rotation)), factor, c,
                   result.own);
    c = result.own.data();
  } else if (!unchanged) {
    result.own.resize(n_bands * n_pw);
#pragma omp parallel for schedule(static)
    for (std::size_t n = 0; n < n_bands; ++n)
      for (std::size_t i = 0; i < n_pw; ++i) result.own[n * n_pw + i] = factor[i] * c[n * n_pw + i];
    c = result.own.data();
  }
  result.coefficients = {c, {static_cast<std::int64_t>(n_bands), static_cast<std::int64_t>(row)}};
  return result;
}

void irreducible_points(const IVec3& grid, const Vec3& shift,
                        const std::vector<SymmetryOperation>& group, std::vector<Vec3>* points,
                        std::vector<double>* weights) {
  const auto total = static_cast<std::size_t>(grid[0]) * static_cast<std::size_t>(grid[1]) *
                     static_cast<std::size_t>(grid[2]);
  std::vector<char> seen(total, 0);
  const auto index_of = [&](const Vec3& k) {
    std::size_t index = 0;
    for (int i = 0; i < 3; ++i) {
      const long n = std::lround((k[i] - shift[i]) * grid[i]);
      index = index * static_cast<std::size_t>(grid[i]) +
              static_cast<std::size_t>(((n % grid[i]) + grid[i]) % grid[i]);
    }
    return index;
  };
  for (int i = 0; i < grid[0]; ++i)
    for (int j = 0; j < grid[1]; ++j)
      for (int k = 0; k < grid[2]; ++k) {
        const Vec3 point = shift + Vec3{1.0 * i / grid[0], 1.0 * j / grid[1], 1.0 * k / grid[2]};
        if (seen[index_of(point)]) continue;
        std::size_t count = 0;
        for (const SymmetryOperation& s : group) {
          char& mark = seen[index_of(multiply(s.rotation, point))];
          count += mark ? 0 : 1;
          mark = 1;
        }
        points->push_back(point);
        weights->push_back(static_cast<double>(count) / static_cast<double>(total));
      }
}

IVec3 rotated_extent(const Wavefunctions& waves, const BrillouinZone& zone) {
  IVec3 extent{};
  for (const ZonePoint& point : zone.points()) {
    const Rotation rotation = zone.rotation_to(point.k);
    const IMat3& s = zone.operations()[static_cast<std::size_t>(rotation.operation)].rotation;
    for (const IVec3& g : waves.waves[static_cast<std::size_t>(rotation.irreducible)].g) {
      const IVec3 rotated = multiply(s, g) - rotation.umklapp;
      for (int i = 0; i < 3; ++i) extent[i] = std::max(extent[i], std::abs(rotated[i]));
    }
  }
  return extent;
}

}  // namespace quasi::gw
