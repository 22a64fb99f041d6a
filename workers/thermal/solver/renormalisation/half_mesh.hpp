#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/physics/q_mesh.hpp"
#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// The points of a mesh of which no two are opposite. Opposite points have conjugate modes, so one
/// of them stands for both.
class HalfMesh {
 public:
  explicit HalfMesh(const QMesh& mesh) : n_{mesh.n[0], mesh.n[1], mesh.n[2]} {
    for (std::int64_t point = 0; point < mesh.size(); ++point) {
      int c[3];
      mesh.coordinates(point, c);
      const std::int64_t opposite = mesh.minus(point);
      if (opposite < point) continue;
      points_.insert(points_.end(), c, c + 3);
      weight_.push_back(opposite == point ? 1.0 : 2.0);
    }
  }
  std::int64_t size() const { return static_cast<std::int64_t>(weight_.size()); }
  /// Returns the weight of each point: 2 if it stands for q and −q, 1 if both are the same point.
  const std::vector<double>& weights() const { return weight_; }
  /// Returns the integer coordinates, [size()][3]. The first point is Γ.
  const std::vector<int>& points() const { return points_; }
  /// Returns the fractional q of a point.
  Vec3 q(std::int64_t point) const {
    Vec3 q{};
    for (int d = 0; d < 3; ++d)
      q[d] = static_cast<double>(points_[static_cast<std::size_t>(3 * point + d)]) / n_[d];
    return q;
  }

 private:
  Index3 n_;
  std::vector<int> points_;
  std::vector<double> weight_;
};

}  // namespace quasi::thermal
