#pragma once

#include <cmath>
#include <vector>

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Weights of q = 0 in sums over the points of a q-grid, for functions that are singular there
/// (docs/theory/gw.md 5). The weight w of h makes the punctured sum exact but for O(1/N_q):
///
///   ∫ h(q) g(q) d³q / V_c = Σ_{q≠0} h(q) g(q) + w g(0),   V_c = (2π)³/(Ω N_q)
///
/// with g smooth and h homogeneous in q [gygi1986, marin2014]. The limits
///
///   w = lim_{α→0} [∫ h e^{−α qᵀεq} d³q / V_c − Σ_{q≠0} h e^{−α qᵀεq}]
///
/// are reached at a finite α: what is left of it falls as e^{−Rᵀε⁻¹R/4α} with the shortest vector R
/// of the dual lattice, and is below 1e-16.
class PuncturedGrid {
 public:
  /// @param bvec  reciprocal vectors (rows) in units of `blat_per_bohr`;  @param grid  points N_i
  PuncturedGrid(const Mat3& bvec, double blat_per_bohr, const IVec3& grid);

  /// Returns the weight of 8π/(qᵀ ε q), Ry Bohr³. It may be negative for elongated grids.
  /// @param epsilon  symmetric and positive definite, Cartesian
  double inverse_square(const Mat3& epsilon) const;
  /// Returns the weights of q_i q_j/(qᵀ ε q). Σ_ij ε_ij w_ij = 1.
  Mat3 directions(const Mat3& epsilon) const;

 private:
  /// ε of one sum, with α and the sum's range.
  struct Gaussian;
  Gaussian gaussian_of(const Mat3& epsilon) const;
  template <typename Use>
  void for_each_point(const Gaussian& g, const Use& use) const;

  Mat3 edge_{};  ///< b_i/N_i, Cartesian, 1/Bohr
  double volume_ = 0.0;
};

/// The same in a plane, for functions f(|p|) that may grow as 1/p at p = 0:
///
///   w = ∫ f g d²p / A − Σ_{p≠0} f g,   g = e^{−(p/p_c)⁶}
///
/// g is flat at p = 0, and p_c is twelve spacings of the grid. The weight of 1/p is then exact to
/// 1e-8.
class PuncturedPlane {
 public:
  /// @param a, b  steps of the grid, Cartesian, 1/Bohr
  PuncturedPlane(const Vec3& a, const Vec3& b);

  /// Returns w. @param f  function of p > 0, double or complex
  template <typename F>
  auto weight(const F& f) const {
    decltype(f(1.0)) sum{};
    for (const Node& node : nodes_) sum += node.weight * f(node.p);
    return sum;
  }

 private:
  struct Node {
    double p, weight;
  };
  std::vector<Node> nodes_;  ///< of the integral, and the points with negative weights
};

}  // namespace quasi::gw
