// Weights of the grid points around a k-point (grid_neighbours): linear functions are interpolated
// exactly, and the weights have the symmetry of the crystal.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/gw/bands/character_crystal.hpp"

namespace quasi::gw {
namespace {

using test::CharacterCrystal;

/// A grid, without states, of an orthogonal lattice with all operations that leave lattice and grid
/// unchanged. `reciprocal_edge` are the lengths of the reciprocal vectors.
MeanField bare_grid(const Vec3& reciprocal_edge, const IVec3& grid, const Vec3& shift) {
  std::vector<SymmetryOperation> group;
  for (const IVec3& axis : {IVec3{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}})
    for (int signs = 0; signs < 8; ++signs) {
      SymmetryOperation s;
      bool leaves = true;
      for (int i = 0; i < 3; ++i) {
        s.rotation[i] = {};
        s.rotation[i][axis[i]] = (signs >> i & 1) != 0 ? -1 : 1;
        leaves =
            leaves && reciprocal_edge[i] == reciprocal_edge[axis[i]] && grid[i] == grid[axis[i]];
      }
      if (!leaves) continue;
      if (s.rotation == IMat3{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}})
        group.insert(group.begin(), s);
      else
        group.push_back(s);
    }
  Wavefunctions waves;
  waves.k_grid = grid;
  waves.k_shift = shift;
  waves.header.crystal.symmetries = group;
  for (std::size_t i = 0; i < 3; ++i)
    waves.header.crystal.bdot[i][i] = reciprocal_edge[i] * reciprocal_edge[i];
  irreducible_points(grid, {shift[0] / grid[0], shift[1] / grid[1], shift[2] / grid[2]}, group,
                     &waves.k, &waves.weight);
  BrillouinZone zone(waves.k, group, grid[0] * grid[1] * grid[2], "a bare grid");
  return {.waves = std::move(waves), .zone = std::move(zone), .density = {}};
}

/// Expects weights that are positive, sum to 1 and interpolate linear functions exactly (Σ w k =
/// k), at points of the grid. The neighbours of S k are those of k, rotated.
void expect_linear_and_symmetric(const MeanField& field) {
  std::mt19937_64 generator(11);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  for (int trial = 0; trial < 20; ++trial) {
    const Vec3 k{uniform(generator), uniform(generator), uniform(generator)};
    const auto neighbours = grid_neighbours(field, k);
    double sum = 0.0;
    Vec3 mean{};
    for (const GridNeighbour& n : neighbours) {
      EXPECT_GT(n.weight, 0.0);
      sum += n.weight;
      mean = mean + n.weight * n.k;
      EXPECT_GE(field.zone.index_of(n.k), 0);
    }
    EXPECT_NEAR(sum, 1.0, 1e-12);
    EXPECT_LT(std::sqrt(dot(mean - k, mean - k)), 1e-9);
    for (const SymmetryOperation& s : field.zone.operations()) {
      const auto turned = grid_neighbours(field, multiply(s.rotation, k));
      ASSERT_EQ(turned.size(), neighbours.size());
      for (const GridNeighbour& n : neighbours) {
        double found = 0.0;
        for (const GridNeighbour& other : turned) {
          const Vec3 d = other.k - multiply(s.rotation, n.k);
          if (dot(d, d) < 1e-10) found = other.weight;
        }
        EXPECT_NEAR(found, n.weight, 1e-9);
      }
    }
  }
}

// The tetrahedra of the cell of the fcc lattice have its symmetry by themselves. Those of a
// rectangular cell share one of its diagonals and do not: their weights have the symmetry only
// because they are averaged over the operations.
TEST(BandCharacter, NeighboursInterpolateLinearlyAndKeepTheSymmetry) {
  expect_linear_and_symmetric(CharacterCrystal("gaas", 4, 3.0).field);
  struct Grid {
    Vec3 edge;
    IVec3 points;
    Vec3 shift;
    std::size_t operations;
  };
  for (const Grid& grid : {Grid{{1, 1, 1}, {3, 3, 3}, {}, 48},
                           {{1, 1, 1.3}, {4, 4, 3}, {}, 16},
                           {{0.9, 1, 1.3}, {3, 2, 4}, {}, 8},
                           {{1, 1, 1.3}, {2, 2, 2}, {0.5, 0.5, 0.5}, 16}}) {
    SCOPED_TRACE(grid.operations);
    const MeanField field = bare_grid(grid.edge, grid.points, grid.shift);
    ASSERT_EQ(field.zone.operations().size(), grid.operations);
    expect_linear_and_symmetric(field);
  }
}

}  // namespace
}  // namespace quasi::gw
