#include "workers/gw/solver/screening/coulomb/planar_cell.hpp"

#include <algorithm>

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

double length(const Vec3& v) { return std::sqrt(dot(v, v)); }

}  // namespace

PlanarCell::PlanarCell(const Vec3& a, const Vec3& b) {
  struct Line {
    Vec3 normal;
    double distance;
  };
  std::vector<Line> lines;
  constexpr int kReach = 3;
  for (int i = -kReach; i <= kReach; ++i)
    for (int j = -kReach; j <= kReach; ++j) {
      if (i == 0 && j == 0) continue;
      const Vec3 g = (1.0 * i) * a + (1.0 * j) * b;
      lines.push_back({(1.0 / length(g)) * g, 0.5 * length(g)});
    }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& x, const Line& y) { return x.distance < y.distance; });
  inscribed_ = lines.front().distance;
  const Vec3 normal = (1.0 / length(cross(a, b))) * cross(a, b);
  for (const Line& line : lines) {
    // The edge is the interval of this line that no other line cuts off.
    const Vec3 along = cross(normal, line.normal), foot = line.distance * line.normal;
    double low = -1e9, high = 1e9;
    for (const Line& other : lines) {
      const double slope = dot(along, other.normal),
                   room = other.distance - dot(foot, other.normal);
      if (&other == &line) continue;
      if (std::abs(slope) < 1e-12) {
        if (room < -1e-12 * inscribed_) high = low;
      } else if (slope > 0.0) {
        high = std::min(high, room / slope);
      } else {
        low = std::max(low, room / slope);
      }
    }
    if (high - low < 1e-10 * inscribed_) continue;
    // The interval is also cut at the foot, so that the integrand along the edge is smooth in each
    // half.
    for (const auto& [from, to] :
         {std::pair{low, std::clamp(0.0, low, high)}, {std::clamp(0.0, low, high), high}}) {
      if (to - from < 1e-12 * inscribed_) continue;
      const Edge edge{foot + from * along, foot + to * along, line.distance * (to - from)};
      area_ += 0.5 * edge.area2;
      circumscribed_ = std::max({circumscribed_, length(edge.a), length(edge.b)});
      edges_.push_back(edge);
    }
  }
  const double expected = length(cross(a, b));
  if (std::abs(area_ - expected) > 1e-9 * expected)
    throw InvalidInput("the Wigner-Seitz cell of the plane could not be constructed (area " +
                       std::to_string(area_) + " of " + std::to_string(expected) +
                       "); use reduced lattice vectors");
}

}  // namespace quasi::gw
