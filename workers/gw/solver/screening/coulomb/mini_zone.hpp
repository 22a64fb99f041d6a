#pragma once

#include <cmath>
#include <vector>

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Nodes and weights of Gauss–Legendre integration on [0, 1].
struct GaussLegendre {
  explicit GaussLegendre(int n);
  std::vector<double> node, weight;
};

/// Averages over the mini-zone of a q-grid (docs/theory/gw.md 5), the Wigner–Seitz cell of the
/// lattice b_i/N_i.
///
/// The cell is cut into pyramids from its centre to its faces. Each is integrated by Gauss–Legendre
/// in the collapsed coordinates of a simplex. At the centre 1/p² is integrated over the radius
/// analytically. The relative error is below 1e-9 for every q+G of a grid. Averages are symmetric
/// to that accuracy without being symmetrised, and no random numbers are used.
class MiniZone {
 public:
  MiniZone(const Mat3& bvec, double blat_per_bohr, const IVec3& grid);

  double volume_per_bohr3() const { return volume_; }
  /// Returns ⟨8π/|Q+p|²⟩_p, Q Cartesian in 1/Bohr, also for Q = 0. Ry Bohr³.
  double inverse_square(const Vec3& q_cartesian) const;
  /// Returns ⟨8π/|Q+p|⟩_p.
  double inverse(const Vec3& q_cartesian) const;
  /// Returns the radius of the largest sphere inside the cell; circumscribed_radius() that of the
  /// smallest around it, 1/Bohr.
  double inscribed_radius() const { return inscribed_; }
  double circumscribed_radius() const { return circumscribed_; }
  /// Returns the longest edge of the triangles into which the faces are cut.
  double longest_edge() const { return longest_edge_; }

  /// Returns ⟨f(Q+p)⟩_p by the same rule, for functions that are smooth on the cell.
  template <typename F>
  double average(const Vec3& q_cartesian, int order, const F& f) const;

  /// Returns Σ over faces of distance · ∫ f dA. This is the volume integral of a function whose
  /// radial integral from the centre to the face point, ∫₀¹ s² F(s·face) ds, is f(face). f must be
  /// even, because only one of two opposite faces is used.
  template <typename F>
  auto even_face_integral(int order, const F& f) const {
    using Value = decltype(f(Vec3{}));  // double or complex
    const GaussLegendre gauss(order);
    Value sum{};
    for (const Triangle& t : triangles_) {
      const double side = std::abs(t.a[0]) > 1e-9   ? t.a[0]
                          : std::abs(t.a[1]) > 1e-9 ? t.a[1]
                                                    : t.a[2];  // t.a: the face's centre
      if (side < 0.0) continue;
      const double area2 = std::sqrt(dot(cross(t.b - t.a, t.c - t.a), cross(t.b - t.a, t.c - t.a)));
      Value part{};
      for (std::size_t i = 0; i < gauss.node.size(); ++i)
        for (std::size_t j = 0; j < gauss.node.size(); ++j) {
          const double u = gauss.node[i], v = gauss.node[j];
          part += gauss.weight[i] * gauss.weight[j] * u *
                  f((1.0 - u) * t.a + (u * (1.0 - v)) * t.b + (u * v) * t.c);
        }
      sum += 2.0 * area2 * t.distance * part;
    }
    return sum;
  }

 private:
  struct Triangle {
    Vec3 a, b, c;     ///< on a face, Cartesian 1/Bohr
    double distance;  ///< of the face from the centre
  };
  int order_for(const Vec3& q_cartesian) const;
  std::vector<Triangle> triangles_;
  double volume_ = 0.0;
  double inscribed_ = 0.0;
  double circumscribed_ = 0.0;
  double longest_edge_ = 0.0;
};

/// Converts reduced to Cartesian coordinates, 1/Bohr.
Vec3 to_cartesian(const Mat3& bvec, double blat_per_bohr, const Vec3& k);

}  // namespace quasi::gw
