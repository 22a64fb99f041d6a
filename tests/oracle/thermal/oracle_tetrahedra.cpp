#include "tests/oracle/thermal/oracle_tetrahedra.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace quasi::oracle {
namespace {

/// Barycentric coordinates. The last three are Cartesian ones of a tetrahedron of volume 1/6.
using Point = std::array<double, 4>;

double area(const Point& a, const Point& b, const Point& c) {
  const double u[3] = {b[1] - a[1], b[2] - a[2], b[3] - a[3]};
  const double v[3] = {c[1] - a[1], c[2] - a[2], c[3] - a[3]};
  return 0.5 * std::hypot(u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2],
                          u[0] * v[1] - u[1] * v[0]);
}

}  // namespace

std::array<double, 4> tetrahedron_weights(double energy, const std::array<double, 4>& f) {
  std::array<int, 4> order{0, 1, 2, 3};
  std::sort(order.begin(), order.end(), [&](int i, int j) { return f[i] < f[j]; });
  // These edges, in this order, are the corners of the polygon as they follow each other.
  constexpr int kEdges[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 3}, {1, 2}, {2, 3}};
  std::vector<Point> polygon;
  for (const auto& edge : kEdges) {
    const int i = order[edge[0]], j = order[edge[1]];
    if (!(f[i] <= energy && energy < f[j])) continue;
    Point p{};
    p[j] = (energy - f[i]) / (f[j] - f[i]);
    p[i] = 1.0 - p[j];
    polygon.push_back(p);
  }
  const double gradient = std::hypot(f[1] - f[0], f[2] - f[0], f[3] - f[0]);
  std::array<double, 4> weights{};
  for (std::size_t k = 2; k < polygon.size(); ++k)
    for (int i = 0; i < 4; ++i)
      weights[i] += 6.0 * area(polygon[0], polygon[k - 1], polygon[k]) / gradient *
                    (polygon[0][i] + polygon[k - 1][i] + polygon[k][i]) / 3.0;
  return weights;
}

std::vector<double> mesh_weights(const std::array<int, 3>& mesh, const std::vector<Steps3ph>& steps,
                                 double energy, const std::vector<double>& f) {
  const int n_q = mesh[0] * mesh[1] * mesh[2];
  std::vector<double> weights(static_cast<std::size_t>(n_q), 0.0);
  for (const Steps3ph& own : steps) {
    std::array<int, 3> axes{0, 1, 2};
    do {
      for (int q = 0; q < n_q; ++q) {
        std::array<int, 3> at{q % mesh[0], q / mesh[0] % mesh[1], q / (mesh[0] * mesh[1])};
        std::array<int, 4> corner{q, 0, 0, 0};
        for (int c = 1; c < 4; ++c) {
          for (int d = 0; d < 3; ++d) at[d] += own[axes[c - 1]][d];
          const auto wrapped = [&](int d) { return (at[d] % mesh[d] + mesh[d]) % mesh[d]; };
          corner[c] = (wrapped(2) * mesh[1] + wrapped(1)) * mesh[0] + wrapped(0);
        }
        const auto of_corner =
            tetrahedron_weights(energy, {f[corner[0]], f[corner[1]], f[corner[2]], f[corner[3]]});
        for (int c = 0; c < 4; ++c)
          weights[corner[c]] += of_corner[c] / (6.0 * static_cast<double>(steps.size()));
      }
    } while (std::next_permutation(axes.begin(), axes.end()));
  }
  return weights;
}

}  // namespace quasi::oracle
