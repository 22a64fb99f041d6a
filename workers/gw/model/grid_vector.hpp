#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Largest error of a reduced coordinate of a wave vector. A deck may write 1/3 as 0.3333.
inline constexpr double kCommensurate = 1e-3;

/// Holds the difference of two points of a grid that is nearest to a wave vector.
struct GridVector {
  Vec3 q{};  ///< reduced, in [0, 1)
  /// First axis along which the wave vector is more than kCommensurate away from `q`; else empty.
  std::optional<int> axis_off_grid;
};

/// Finds the difference of two points of a grid that is nearest to a wave vector.
/// @param q     wave vector, reduced
/// @param grid  number of points along each axis; 0 counts as 1
inline GridVector nearest_grid_vector(const Vec3& q, const IVec3& grid) {
  GridVector nearest;
  for (int axis = 0; axis < 3; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const int n = std::max(1, grid[i]), steps = static_cast<int>(std::lround(q[i] * n));
    if (std::abs(q[i] * n - steps) > kCommensurate * n && !nearest.axis_off_grid)
      nearest.axis_off_grid = axis;
    nearest.q[i] = static_cast<double>((steps % n + n) % n) / n;
  }
  return nearest;
}

}  // namespace quasi::gw
