#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace quasi::gw {

template <typename T>
struct ValueAndSlope {
  T value{}, slope{};
};

/// Weights of the four points around x, and of their slopes, for Lagrange's cubic. A small grid has
/// fewer points. `first` is the first of the points. See docs/theory/gw.md 6.5 for the equations.
struct CubicWeights {
  std::size_t first = 0, count = 0;
  double value[4] = {}, slope[4] = {};
};
/// Returns the weights at x. @param grid  ascending
inline CubicWeights cubic_weights(const std::vector<double>& grid, double x) {
  CubicWeights w;
  w.count = std::min<std::size_t>(4, grid.size());
  const auto above =
      static_cast<std::size_t>(std::upper_bound(grid.begin(), grid.end(), x) - grid.begin());
  w.first = std::min(above > 2 ? above - 2 : 0, grid.size() - w.count);
  for (std::size_t i = 0; i < w.count; ++i) {
    double product = 1.0, slope = 0.0;
    for (std::size_t j = 0; j < w.count; ++j) {
      if (j == i) continue;
      const double span = grid[w.first + i] - grid[w.first + j];
      slope = slope * (x - grid[w.first + j]) / span + product / span;
      product *= (x - grid[w.first + j]) / span;
    }
    w.value[i] = product;
    w.slope[i] = slope;
  }
  return w;
}

/// Interpolates values on a grid and their slope at x.
template <typename T>
ValueAndSlope<T> cubic_at(const std::vector<double>& grid, const std::vector<T>& values, double x) {
  const CubicWeights w = cubic_weights(grid, x);
  ValueAndSlope<T> result;
  for (std::size_t i = 0; i < w.count; ++i) {
    result.value += w.value[i] * values[w.first + i];
    result.slope += w.slope[i] * values[w.first + i];
  }
  return result;
}

}  // namespace quasi::gw
