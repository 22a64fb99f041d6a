#pragma once

#include <filesystem>
#include <vector>

#include "workers/thermal/input/displacements/force_frame.hpp"

namespace quasi::thermal {

/// Reads frames of an extended XYZ file as ASE writes them: `Lattice` and `Properties` in the
/// second line of a frame, with the columns `species`, `pos` and `forces` (or `force`). Other
/// columns are skipped.
/// @throws InvalidInput naming file, line, what was expected and the remedy
std::vector<ForceFrame> read_extended_xyz(const std::filesystem::path& file);

}  // namespace quasi::thermal
