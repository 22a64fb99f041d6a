#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/physics/q_mesh.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {

/// The points of a mesh of which no two are opposite, with e^{iqR} from a table. Opposite points
/// have conjugate modes, so one of them stands for both.
class HalfMesh {
 public:
  explicit HalfMesh(const QMesh& mesh) : n_{mesh.n[0], mesh.n[1], mesh.n[2]} {
    for (int d = 0; d < 3; ++d)
      for (int k = 0; k < n_[d]; ++k)
        root_[d].push_back(std::polar(1.0, 2.0 * units::kPi * k / n_[d]));
    for (std::int64_t point = 0; point < mesh.size(); ++point) {
      int c[3];
      mesh.coordinates(point, c);
      const std::int64_t opposite = mesh.minus(point);
      if (opposite < point) continue;
      points_.push_back({c[0], c[1], c[2]});
      weight_.push_back(opposite == point ? 1.0 : 2.0);
    }
  }
  std::int64_t size() const { return static_cast<std::int64_t>(points_.size()); }
  /// Returns the number of mesh points that a point stands for, 1 or 2.
  double weight(std::int64_t point) const { return weight_[point]; }
  /// Returns the fractional q of a point. The first is Γ.
  Vec3 q(std::int64_t point) const {
    Vec3 q{};
    for (int d = 0; d < 3; ++d) q[d] = static_cast<double>(points_[point][d]) / n_[d];
    return q;
  }
  /// Returns e^{iqR} for a lattice vector R.
  std::complex<double> wave(std::int64_t point, const Index3& cell) const {
    std::complex<double> product = 1.0;
    for (int d = 0; d < 3; ++d) {
      const int turns = QMesh::wrap(points_[point][d] * QMesh::wrap(cell[d], n_[d]), n_[d]);
      product *= root_[d][turns];
    }
    return product;
  }

 private:
  Index3 n_;
  std::array<std::vector<std::complex<double>>, 3> root_;  ///< [axis][k] e^{2πik/n}
  std::vector<Index3> points_;
  std::vector<double> weight_;
};

}  // namespace quasi::thermal
