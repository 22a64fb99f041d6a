#include "workers/gw/solver/bands/grid_neighbours.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace quasi::gw {
namespace {

constexpr double kNoWeight = 1e-12;

/// Returns the axes along which the shortest diagonal of a grid cell runs backwards.
std::array<bool, 3> reversed_axes(const IVec3& grid, const Mat3& bdot) {
  std::array<bool, 3> backwards{};
  double shortest = 1e300;
  for (int bits = 0; bits < 4; ++bits) {
    const Vec3 d{1.0 / grid[0], (bits & 1 ? -1.0 : 1.0) / grid[1],
                 (bits & 2 ? -1.0 : 1.0) / grid[2]};
    const double length2 = metric_dot(bdot, d, d);
    if (length2 > shortest - 1e-9) continue;
    shortest = length2;
    backwards = {false, (bits & 1) != 0, (bits & 2) != 0};
  }
  return backwards;
}

}  // namespace

std::vector<GridNeighbour> grid_neighbours(const MeanField& field, const Vec3& k) {
  const IVec3& grid = field.waves.k_grid;
  const std::array<bool, 3> backwards = reversed_axes(grid, field.crystal().bdot);
  const auto& operations = field.zone.operations();
  std::map<std::array<long, 3>, double> weight;
  for (const SymmetryOperation& s : operations) {
    const Vec3 turned = multiply(s.rotation, k);
    IVec3 base{};
    Vec3 t{};
    for (int i = 0; i < 3; ++i) {
      const double x = turned[i] * grid[i] - field.waves.k_shift[i];
      base[i] = static_cast<int>(std::floor(x + 1e-9));
      t[i] = std::max(0.0, x - base[i]);
      if (backwards[static_cast<std::size_t>(i)]) t[i] = 1.0 - t[i];
    }
    std::array<int, 3> axis{0, 1, 2};
    std::stable_sort(axis.begin(), axis.end(), [&](int a, int b) { return t[a] > t[b]; });
    IVec3 corner{};
    const IMat3 back = inverse(s.rotation);
    for (int step = 0; step <= 3; ++step) {
      if (step > 0) corner[axis[static_cast<std::size_t>(step - 1)]] = 1;
      const double share = (step == 0 ? 1.0 : t[axis[static_cast<std::size_t>(step - 1)]]) -
                           (step == 3 ? 0.0 : t[axis[static_cast<std::size_t>(step)]]);
      if (share < kNoWeight) continue;
      Vec3 point{};
      for (int i = 0; i < 3; ++i) {
        const int c = backwards[static_cast<std::size_t>(i)] ? 1 - corner[i] : corner[i];
        point[i] = (base[i] + c + field.waves.k_shift[i]) / grid[i];
      }
      point = multiply(back, point);
      weight[{std::lround(point[0] * 1e6), std::lround(point[1] * 1e6),
              std::lround(point[2] * 1e6)}] += share / static_cast<double>(operations.size());
    }
  }
  std::vector<GridNeighbour> result;
  for (const auto& [key, value] : weight) {
    Vec3 at{};
    for (int i = 0; i < 3; ++i)
      at[i] = (std::round(static_cast<double>(key[static_cast<std::size_t>(i)]) * 1e-6 * grid[i] -
                          field.waves.k_shift[i]) +
               field.waves.k_shift[i]) /
              grid[i];
    result.push_back({at, value});
  }
  return result;
}

}  // namespace quasi::gw
