#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "workers/gw/physics/crystal.hpp"
#include "workers/gw/solver/screening/coulomb/mini_zone.hpp"

namespace quasi::gw {

/// Wigner–Seitz cell of a lattice in a plane, cut into triangles from its centre to its edges. It
/// is the cross-section of a wire's cell, or the mini-zone of a slab (docs/theory/gw.md 5).
class PlanarCell {
 public:
  /// @param a, b  lattice vectors, Cartesian
  PlanarCell(const Vec3& a, const Vec3& b);
  double area() const { return area_; }
  double inscribed_radius() const { return inscribed_; }
  double circumscribed_radius() const { return circumscribed_; }

  /// Returns ∫ f over the cell by Gauss–Legendre in the collapsed coordinates of each triangle. The
  /// coordinate s = u³ resolves the centre, where f may grow as ln or 1/ρ.
  template <typename F>
  auto integral(int order, const F& f) const {
    decltype(f(Vec3{})) sum{};
    for_each_point(order, [&](const Vec3& at, double weight) { sum += weight * f(at); });
    return sum;
  }
  /// Calls use(point, weight) for the points of that rule.
  template <typename Use>
  void for_each_point(int order, const Use& use) const {
    const GaussLegendre gauss(order);
    for (const Edge& edge : edges_)
      for (std::size_t i = 0; i < gauss.node.size(); ++i) {
        const double u = gauss.node[i], s = u * u * u;
        for (std::size_t j = 0; j < gauss.node.size(); ++j) {
          const double t = gauss.node[j];
          use(s * ((1.0 - t) * edge.a + t * edge.b),
              gauss.weight[i] * gauss.weight[j] * edge.area2 * s * 3.0 * u * u);
        }
      }
  }

 private:
  struct Edge {
    Vec3 a, b;
    double area2;  ///< twice the area of the triangle
  };
  std::vector<Edge> edges_;
  double area_ = 0.0, inscribed_ = 0.0, circumscribed_ = 0.0;
};

}  // namespace quasi::gw
