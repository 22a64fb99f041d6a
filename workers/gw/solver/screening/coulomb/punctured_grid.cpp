#include "workers/gw/solver/screening/coulomb/punctured_grid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "workers/gw/physics/coulomb.hpp"
#include "workers/gw/solver/screening/coulomb/mini_zone.hpp"

namespace quasi::gw {
namespace {

constexpr double kExponent = 40.0;  // e^{−40} counts as 0

double length(const Vec3& v) { return std::sqrt(dot(v, v)); }

double determinant_of(const Mat3& m) { return dot(m[0], cross(m[1], m[2])); }

Mat3 inverse_of(const Mat3& m) {
  Mat3 result{};
  const double det = determinant_of(m);
  for (std::size_t i = 0; i < 3; ++i) {
    const Vec3 column = (1.0 / det) * cross(m[(i + 1) % 3], m[(i + 2) % 3]);
    for (std::size_t j = 0; j < 3; ++j) result[j][i] = column[j];
  }
  return result;
}

}  // namespace

struct PuncturedGrid::Gaussian {
  Mat3 epsilon{}, inverse{};
  double alpha = 0.0;   ///< Bohr²
  IVec3 reach{};        ///< largest |n_i| of the sum
  double volume = 0.0;  ///< V_c √det ε
  /// ∫ e^{−α qᵀεq} d³q / V_c.
  double integral() const { return std::pow(kPi / alpha, 1.5) / volume; }
};

PuncturedGrid::PuncturedGrid(const Mat3& bvec, double blat_per_bohr, const IVec3& grid) {
  for (std::size_t i = 0; i < 3; ++i) edge_[i] = (blat_per_bohr / grid[i]) * bvec[i];
  volume_ = std::abs(determinant_of(edge_));
}

PuncturedGrid::Gaussian PuncturedGrid::gaussian_of(const Mat3& epsilon) const {
  Gaussian g{.epsilon = epsilon, .inverse = inverse_of(epsilon)};
  g.volume = volume_ * std::sqrt(determinant_of(epsilon));
  Mat3 metric{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) metric[i][j] = dot(edge_[i], multiply(epsilon, edge_[j]));
  const Mat3 dual = inverse_of(metric);  // R_iᵀ ε⁻¹ R_j/4π²
  double shortest = std::numeric_limits<double>::max();
  constexpr int kReach = 3;  // reaches the shortest vector of a lattice that is nearly reduced
  for (int i = -kReach; i <= kReach; ++i)
    for (int j = -kReach; j <= kReach; ++j)
      for (int k = -kReach; k <= kReach; ++k) {
        const Vec3 n = to_real({i, j, k});
        if (i != 0 || j != 0 || k != 0) shortest = std::min(shortest, dot(n, multiply(dual, n)));
      }
  g.alpha = kPi * kPi * shortest / kExponent;
  for (std::size_t i = 0; i < 3; ++i)
    g.reach[i] = static_cast<int>(std::sqrt(kExponent / g.alpha * dual[i][i])) + 1;
  return g;
}

template <typename Use>
void PuncturedGrid::for_each_point(const Gaussian& g, const Use& use) const {
  for (int i = -g.reach[0]; i <= g.reach[0]; ++i)
    for (int j = -g.reach[1]; j <= g.reach[1]; ++j)
      for (int k = -g.reach[2]; k <= g.reach[2]; ++k) {
        if (i == 0 && j == 0 && k == 0) continue;
        const Vec3 q = (1.0 * i) * edge_[0] + (1.0 * j) * edge_[1] + (1.0 * k) * edge_[2];
        const double square = dot(q, multiply(g.epsilon, q));
        if (g.alpha * square < kExponent) use(q, square, std::exp(-g.alpha * square));
      }
}

// The derivative of the bracket by α is 1 for 1/(qᵀεq), because the sum then lacks the point 0 of a
// smooth function.
double PuncturedGrid::inverse_square(const Mat3& epsilon) const {
  const Gaussian g = gaussian_of(epsilon);
  double sum = 0.0;
  for_each_point(g, [&](const Vec3&, double square, double weight) { sum += weight / square; });
  return kEightPi * (2.0 * g.alpha * g.integral() - sum + g.alpha);
}

Mat3 PuncturedGrid::directions(const Mat3& epsilon) const {
  const Gaussian g = gaussian_of(epsilon);
  Mat3 weights{};
  for_each_point(g, [&](const Vec3& q, double square, double weight) {
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) weights[i][j] -= weight / square * q[i] * q[j];
  });
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) weights[i][j] += g.integral() * g.inverse[i][j] / 3.0;
  return weights;
}

PuncturedPlane::PuncturedPlane(const Vec3& a, const Vec3& b) {
  constexpr double kSpacings = 12.0, kEnd = 1.9;  // g(1.9 p_c) = 4e-21
  constexpr int kPanels = 24, kOrder = 16;
  const double area = length(cross(a, b)), aa = dot(a, a), bb = dot(b, b), ab = dot(a, b);
  // The distance of neighbouring lines of points bounds the spacing from above.
  const double spacing = std::max(
                   {area / std::sqrt(aa), area / std::sqrt(bb), std::sqrt(aa), std::sqrt(bb)}),
               cutoff = kSpacings * spacing, end = kEnd * cutoff;
  const auto flat = [&](double p) { return std::exp(-std::pow(p / cutoff, 6)); };
  // Panels halve towards p = 0, where f may change within a fraction of the spacing.
  const GaussLegendre gauss(kOrder);
  for (int panel = 0; panel < kPanels; ++panel) {
    const double to = std::ldexp(end, -panel), from = panel + 1 < kPanels ? 0.5 * to : 0.0;
    for (std::size_t i = 0; i < gauss.node.size(); ++i) {
      const double p = from + (to - from) * gauss.node[i];
      nodes_.push_back({p, 2.0 * kPi * p * flat(p) * (to - from) * gauss.weight[i] / area});
    }
  }
  const int reach_a = static_cast<int>(end * std::sqrt(bb) / area) + 1,
            reach_b = static_cast<int>(end * std::sqrt(aa) / area) + 1;
  for (int i = -reach_a; i <= reach_a; ++i)
    for (int j = -reach_b; j <= reach_b; ++j) {
      const double p = std::sqrt(i * i * aa + 2.0 * i * j * ab + j * j * bb);
      if (p > 0.0 && p < end) nodes_.push_back({p, -flat(p)});
    }
}

}  // namespace quasi::gw
