#pragma once

#include <vector>

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Averages over the mini-zone of a q-grid: the Wigner–Seitz cell of the lattice b_i/N_i.
///
/// The cell is cut into pyramids from its centre to its faces; each is integrated by Gauss–Legendre
/// in the collapsed coordinates of a simplex. At the centre 1/p² is integrated over the radius
/// analytically. Relative error below 1e-9 for every q+G of a grid, so that averages are symmetric
/// to that accuracy without being symmetrised, and nothing is random.
class MiniZone {
 public:
  MiniZone(const Mat3& bvec, double blat_per_bohr, const IVec3& grid);

  double volume_per_bohr3() const { return volume_; }
  /// ⟨8π/|Q+p|²⟩_p, Q Cartesian in 1/Bohr; Q = 0 included. Ry Bohr³.
  double inverse_square(const Vec3& q_cartesian) const;
  /// ⟨8π/|Q+p|⟩_p.
  double inverse(const Vec3& q_cartesian) const;
  /// Radius of the largest sphere inside the cell and of the smallest around it, 1/Bohr.
  double inscribed_radius() const { return inscribed_; }
  double circumscribed_radius() const { return circumscribed_; }

  /// ⟨f(Q+p)⟩_p by the same rule, for functions smooth on the cell.
  template <typename F>
  double average(const Vec3& q_cartesian, int order, const F& f) const;

 private:
  struct Triangle {
    Vec3 a, b, c;  ///< on a face, Cartesian 1/Bohr
    double distance;  ///< of the face from the centre
  };
  int order_for(const Vec3& q_cartesian) const;
  std::vector<Triangle> triangles_;
  double volume_ = 0.0;
  double inscribed_ = 0.0;
  double circumscribed_ = 0.0;
};

/// Nodes and weights of Gauss–Legendre on [0, 1].
struct GaussLegendre {
  explicit GaussLegendre(int n);
  std::vector<double> node, weight;
};

/// Reduced to Cartesian, 1/Bohr.
Vec3 to_cartesian(const Mat3& bvec, double blat_per_bohr, const Vec3& k);

}  // namespace quasi::gw
