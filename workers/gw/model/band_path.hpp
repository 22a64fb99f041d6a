#pragma once

#include <vector>

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// A path through the Brillouin zone.
struct BandPath {
  std::vector<Vec3> corners;    ///< reduced; empty: no path
  int points_per_segment = 40;  ///< number of points from one corner to the next
};

/// Rule by which corrections are carried from the points of the grid to those of a path
/// (docs/theory/gw.md 10).
enum class BandOrder {
  kAutomatic,  ///< kCharacter if H is known between the points of the grid, else kEnergy
  kCharacter,  ///< overlaps of states at the path's points with those of the grid
  kEnergy,     ///< star functions through the energies of each rank [koelling1986]
};

}  // namespace quasi::gw
