#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/contour.hpp"

namespace quasi::gw {

/// Segment of the real axis that holds a frequency (docs/theory/gw.md 6.5), between the points
/// `first` and `first` + 1.
struct RealSegment {
  std::size_t first = 0;
  double width_ry = 0.0;
  double part = 0.0;  ///< (ω − ω_first)/width
};
/// Finds the segment of ω ≥ 0. @throws InvalidInput if ω lies beyond the grid
inline RealSegment real_segment(std::span<const double> real_ry, double omega_ry) {
  if (omega_ry > real_ry.back())
    throw InvalidInput("ε⁻¹ is needed at " + std::to_string(omega_ry * kRydberg_ev) +
                       " eV, beyond the real-axis grid that ends at " +
                       std::to_string(real_ry.back() * kRydberg_ev) +
                       " eV; raise epsilon.real_max_ev");
  auto i = static_cast<std::size_t>(std::upper_bound(real_ry.begin(), real_ry.end(), omega_ry) -
                                    real_ry.begin());
  i = std::min(i, real_ry.size() - 1);
  const double width_ry = real_ry[i] - real_ry[i - 1];
  return {i - 1, width_ry, (omega_ry - real_ry[i - 1]) / width_ry};
}

/// Calls visit(i, factor) for the two real points between which S(|x|) is interpolated as a
/// residue, if there is one.
template <typename Visit>
void for_each_residue_point(std::span<const double> real_ry, double x_ry, bool occupied,
                            Visit&& visit) {
  const double sign = residue_sign(x_ry, occupied);
  if (sign == 0.0) return;
  const RealSegment at = real_segment(real_ry, std::abs(x_ry));
  visit(at.first, sign * (1.0 - at.part));
  visit(at.first + 1, sign * at.part);
}

}  // namespace quasi::gw
