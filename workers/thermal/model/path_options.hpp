#pragma once

#include <string>
#include <vector>

#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// A vertex of a path through the Brillouin zone.
struct PathVertex {
  std::string label;
  Vec3 q{0, 0, 0};      ///< fractional, of the reciprocal lattice of the deck
  bool starts = false;  ///< no segment leads to it
};

/// A path of straight segments between vertices; empty: none.
struct PathOptions {
  std::vector<PathVertex> vertices;
  int points = 101;  ///< of a segment, both ends included
};

}  // namespace quasi::thermal
