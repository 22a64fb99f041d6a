#pragma once

#include <vector>

#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {

/// A point of the grid of mean-field states and its weight at a point between grid points.
struct GridNeighbour {
  Vec3 k{};  ///< not folded: next to the point between grid points
  double weight = 0.0;
};

/// Returns the neighbours of k in the grid with the weights of a linear interpolation in the
/// tetrahedra of the grid cells (docs/theory/gw.md 10). Each cell is cut along its shortest
/// diagonal. The weights are averaged over the operations of the crystal, so that they have its
/// symmetry. They add up to 1. A point of the grid is its own and only neighbour.
std::vector<GridNeighbour> grid_neighbours(const MeanField& field, const Vec3& k);

}  // namespace quasi::gw
