#pragma once

#include <string>
#include <vector>

#include "workers/thermal/physics/vectors.hpp"

/// Begin here: workers/thermal/input/displacements reads forces that other programs computed.
namespace quasi::thermal {

/// Holds a periodic cell with the forces on its atoms, as another program computed them. Where a
/// file has forces alone, the lists of symbols and positions are empty.
struct ForceFrame {
  Mat3 lattice_angstrom{};                  ///< row i is vector i
  std::vector<std::string> symbol;          ///< [atom]
  std::vector<Vec3> position_angstrom;      ///< [atom]
  std::vector<Vec3> force_ev_per_angstrom;  ///< [atom]
};

}  // namespace quasi::thermal
