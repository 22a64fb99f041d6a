#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// A periodic cell with the forces on its atoms, as another program computed them.
struct ForceFrame {
  Mat3 lattice_angstrom{};                  ///< row i is vector i
  std::vector<std::string> symbol;          ///< [atom]
  std::vector<Vec3> position_angstrom;      ///< [atom]
  std::vector<Vec3> force_ev_per_angstrom;  ///< [atom]
};

/// Reads frames of an extended XYZ file as ASE writes them: `Lattice` and `Properties` in the
/// second line of a frame, with the columns `species`, `pos` and `forces` (or `force`). Other
/// columns are skipped.
/// @throws InvalidInput naming file, line, what was expected and the remedy
std::vector<ForceFrame> read_extended_xyz(const std::filesystem::path& file);

}  // namespace quasi::thermal
