#include "workers/gw/solver/screening/coulomb/mini_zone.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/coulomb.hpp"

namespace quasi::gw {
namespace {

double length(const Vec3& v) { return std::sqrt(dot(v, v)); }

/// Returns the part of a convex polygon with p·n ≤ d.
std::vector<Vec3> clipped(const std::vector<Vec3>& polygon, const Vec3& n, double d,
                          double tolerance) {
  std::vector<Vec3> kept;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Vec3& a = polygon[i];
    const Vec3& b = polygon[(i + 1) % polygon.size()];
    const double fa = dot(a, n) - d, fb = dot(b, n) - d;
    if (fa <= tolerance) kept.push_back(a);
    if ((fa < -tolerance && fb > tolerance) || (fa > tolerance && fb < -tolerance))
      kept.push_back(a + (fa / (fa - fb)) * (b - a));
  }
  return kept;
}

const GaussLegendre& rule(int n) {
  static const auto rules = [] {
    std::map<int, GaussLegendre> made;
    for (const int order : {4, 6, 10, 16, 24}) made.emplace(order, GaussLegendre(order));
    return made;
  }();
  return rules.at(n);
}

}  // namespace

GaussLegendre::GaussLegendre(int n)
    : node(static_cast<std::size_t>(n)), weight(static_cast<std::size_t>(n)) {
  for (int i = 0; i < n; ++i) {
    double x = std::cos(kPi * (i + 0.75) / (n + 0.5));
    double derivative = 0.0;
    for (int iteration = 0; iteration < 100; ++iteration) {
      double p0 = 1.0, p1 = x;
      for (int k = 2; k <= n; ++k) {
        const double p2 = ((2 * k - 1) * x * p1 - (k - 1) * p0) / k;
        p0 = p1;
        p1 = p2;
      }
      derivative = n * (x * p1 - p0) / (x * x - 1.0);
      const double step = p1 / derivative;
      x -= step;
      if (std::abs(step) < 1e-16) break;
    }
    node[static_cast<std::size_t>(i)] = 0.5 * (1.0 - x);
    weight[static_cast<std::size_t>(i)] = 1.0 / ((1.0 - x * x) * derivative * derivative);
  }
}

Vec3 to_cartesian(const Mat3& bvec, double blat_per_bohr, const Vec3& k) {
  Vec3 result{};
  for (int i = 0; i < 3; ++i) result = result + (blat_per_bohr * k[i]) * bvec[i];
  return result;
}

MiniZone::MiniZone(const Mat3& bvec, double blat_per_bohr, const IVec3& grid) {
  std::array<Vec3, 3> b{};
  for (int i = 0; i < 3; ++i) b[i] = (blat_per_bohr / grid[i]) * bvec[i];
  struct Plane {
    Vec3 normal;
    double distance;
  };
  std::vector<Plane> planes;
  constexpr int kReach = 3;  // for reduced lattice vectors this reaches every face of the cell
  for (int i = -kReach; i <= kReach; ++i)
    for (int j = -kReach; j <= kReach; ++j)
      for (int k = -kReach; k <= kReach; ++k) {
        if (i == 0 && j == 0 && k == 0) continue;
        const Vec3 g = (1.0 * i) * b[0] + (1.0 * j) * b[1] + (1.0 * k) * b[2];
        planes.push_back({(1.0 / length(g)) * g, 0.5 * length(g)});
      }
  std::stable_sort(planes.begin(), planes.end(),
                   [](const Plane& x, const Plane& y) { return x.distance < y.distance; });
  const double scale = planes.front().distance;
  inscribed_ = scale;
  for (std::size_t f = 0; f < planes.size(); ++f) {
    const Plane& plane = planes[f];
    const Vec3 axis = std::abs(plane.normal[0]) < 0.6 ? Vec3{1, 0, 0} : Vec3{0, 1, 0};
    Vec3 u = cross(plane.normal, axis);
    u = (1.0 / length(u)) * u;
    const Vec3 v = cross(plane.normal, u);
    const Vec3 centre = plane.distance * plane.normal;
    const double far = 1e3 * scale;
    std::vector<Vec3> polygon{centre + far * u + far * v, centre - far * u + far * v,
                              centre - far * u - far * v, centre + far * u - far * v};
    for (std::size_t other = 0; other < planes.size() && polygon.size() >= 3; ++other)
      if (other != f)
        polygon = clipped(polygon, planes[other].normal, planes[other].distance, 1e-12 * scale);
    if (polygon.size() < 3) continue;
    for (std::size_t i = 0; i < polygon.size(); ++i) {
      const Triangle triangle{centre, polygon[i], polygon[(i + 1) % polygon.size()],
                              plane.distance};
      const double area = 0.5 * length(cross(triangle.b - triangle.a, triangle.c - triangle.a));
      if (area < 1e-10 * scale * scale) continue;
      volume_ += area * plane.distance / 3.0;
      circumscribed_ = std::max(circumscribed_, length(polygon[i]));
      longest_edge_ = std::max({longest_edge_, length(triangle.b - triangle.a),
                                length(triangle.c - triangle.b), length(triangle.c - triangle.a)});
      triangles_.push_back(triangle);
    }
  }
  const double expected = std::abs(dot(b[0], cross(b[1], b[2])));
  if (std::abs(volume_ - expected) > 1e-9 * expected)
    throw InvalidInput("the Wigner-Seitz cell of the q-grid could not be constructed (volume " +
                       std::to_string(volume_) + " of " + std::to_string(expected) +
                       " Bohr⁻³); use reduced lattice vectors");
}

int MiniZone::order_for(const Vec3& q) const {
  // The integrand's singularity lies |q| from the centre. The order gives a relative error below
  // 1e-9.
  const double ratio = length(q) / circumscribed_;
  return ratio < 2.0 ? 16 : ratio < 4.0 ? 10 : ratio < 12.0 ? 6 : 4;
}

template <typename F>
double MiniZone::average(const Vec3& q, int order, const F& f) const {
  const GaussLegendre& gauss = rule(order);
  double sum = 0.0;
  for (const Triangle& t : triangles_) {
    const double area2 = length(cross(t.b - t.a, t.c - t.a));
    double part = 0.0;
    for (int i = 0; i < order; ++i)
      for (int j = 0; j < order; ++j) {
        const auto iu = static_cast<std::size_t>(i), iv = static_cast<std::size_t>(j);
        const double u = gauss.node[iu], v = gauss.node[iv];
        const Vec3 face = (1.0 - u) * t.a + (u * (1.0 - v)) * t.b + (u * v) * t.c;
        double radial = 0.0;
        for (int k = 0; k < order; ++k) {
          const auto is = static_cast<std::size_t>(k);
          const double s = gauss.node[is];
          radial += gauss.weight[is] * s * s * f(q + s * face);
        }
        part += gauss.weight[iu] * gauss.weight[iv] * u * radial;
      }
    sum += area2 * t.distance * part;
  }
  return sum / volume_;
}

double MiniZone::inverse_square(const Vec3& q) const {
  if (length(q) > 1e-10 * inscribed_)
    return average(q, order_for(q), [](const Vec3& p) { return kEightPi / dot(p, p); });
  // ∫ d³p/p² over a pyramid is distance · ∫_face dA/r², because the radius is integrated
  // analytically.
  const GaussLegendre& gauss = rule(24);
  double sum = 0.0;
  for (const Triangle& t : triangles_) {
    const double area2 = length(cross(t.b - t.a, t.c - t.a));
    for (std::size_t i = 0; i < gauss.node.size(); ++i)
      for (std::size_t j = 0; j < gauss.node.size(); ++j) {
        const double u = gauss.node[i], v = gauss.node[j];
        const Vec3 face = (1.0 - u) * t.a + (u * (1.0 - v)) * t.b + (u * v) * t.c;
        sum += area2 * t.distance * gauss.weight[i] * gauss.weight[j] * u / dot(face, face);
      }
  }
  return kEightPi * sum / volume_;
}

double MiniZone::inverse(const Vec3& q) const {
  return average(q, order_for(q), [](const Vec3& p) { return kEightPi / std::sqrt(dot(p, p)); });
}

}  // namespace quasi::gw
