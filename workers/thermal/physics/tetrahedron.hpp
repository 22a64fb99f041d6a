#pragma once

#include "workers/backend/host_device.hpp"

namespace quasi::thermal {

/// Corner values of a tetrahedron that differ by less are equal but for rounding. Such a
/// tetrahedron gets no weight, because the rounding would decide on it.
constexpr double kFlatTetrahedron = 1e-9;

namespace tetrahedron_detail {

/// Position of E between two values: 0 at `from` and 1 at `to`.
QUASI_HD inline double share(double energy, double from, double to) {
  return (energy - from) / (to - from);
}

/// Weight of the corner with place `rank` for v0 < E < v1.
QUASI_HD inline double lowest_part(double e, int rank, const double* v) {
  const double f1 = share(e, v[0], v[1]), f2 = share(e, v[0], v[2]), f3 = share(e, v[0], v[3]);
  const double density = f1 * f2 / (v[3] - v[0]);
  if (rank == 0)
    return density * (share(e, v[1], v[0]) + share(e, v[2], v[0]) + share(e, v[3], v[0]));
  return density * (rank == 1 ? f1 : rank == 2 ? f2 : f3);
}

/// Weight of the corner with place `rank` for v1 ≤ E < v2, where the surface is a quadrangle.
QUASI_HD inline double middle_part(double e, int rank, const double* v) {
  const double f20 = share(e, v[0], v[2]), f02 = share(e, v[2], v[0]);
  const double f21 = share(e, v[1], v[2]), f12 = share(e, v[2], v[1]);
  const double f13 = share(e, v[3], v[1]), f31 = share(e, v[1], v[3]);
  const double f03 = share(e, v[3], v[0]), f30 = share(e, v[0], v[3]);
  const double first = f12 * f20, second = f21 * f13;
  double sum;
  if (rank == 0)
    sum = (first + second) * f03 + first * f02;
  else if (rank == 1)
    sum = (first + second) * f12 + second * f13;
  else if (rank == 2)
    sum = (first + second) * f21 + first * f20;
  else
    sum = (first + second) * f30 + second * f31;
  return sum / (v[3] - v[0]);
}

/// Weight of the corner with place `rank` for v2 ≤ E < v3.
QUASI_HD inline double highest_part(double e, int rank, const double* v) {
  const double f0 = share(e, v[3], v[0]), f1 = share(e, v[3], v[1]), f2 = share(e, v[3], v[2]);
  const double density = f1 * f2 / (v[3] - v[0]);
  if (rank == 3)
    return density * (share(e, v[0], v[3]) + share(e, v[1], v[3]) + share(e, v[2], v[3]));
  return density * (rank == 0 ? f0 : rank == 1 ? f1 : f2);
}

}  // namespace tetrahedron_detail

/// Returns the weight of a corner in ∫ δ(E − f) φ d³q / volume, where f and φ are linear in
/// the tetrahedron: the derivative of the integral by φ of that corner (docs/theory/thermal.md
/// 4.1) [macdonald1979]. It is not negative, and it is 0 unless the least f < E < the largest.
/// @param own      f at the corner
/// @param a, b, c  f at the other corners
QUASI_HD inline double tetrahedron_weight(double energy, double own, double a, double b, double c) {
  const double low = a < b ? a : b, high = a < b ? b : a;
  const double others[3] = {low < c ? low : c, low < c ? (high < c ? high : c) : low,
                            high < c ? c : high};
  const int rank =
      (own > others[0] ? 1 : 0) + (own > others[1] ? 1 : 0) + (own > others[2] ? 1 : 0);
  const double v[4] = {
      rank == 0 ? own : others[0], rank == 0 ? others[0] : (rank == 1 ? own : others[1]),
      rank <= 1 ? others[1] : (rank == 2 ? own : others[2]), rank == 3 ? own : others[2]};
  if (energy <= v[0] || energy >= v[3] || v[3] - v[0] < kFlatTetrahedron) return 0.0;
  if (energy < v[1]) return tetrahedron_detail::lowest_part(energy, rank, v);
  if (energy < v[2]) return tetrahedron_detail::middle_part(energy, rank, v);
  return tetrahedron_detail::highest_part(energy, rank, v);
}

}  // namespace quasi::thermal
