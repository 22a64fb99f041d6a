#pragma once

#include <filesystem>
#include <vector>

#include "workers/thermal/input/displacements/force_frame.hpp"

namespace quasi::thermal {

/// Reads FORCES_FC2 or FORCES_FC3 of phono3py, in eV/Å: for each supercell lines of comment, the
/// first of which begins with "# File:", and one line of three numbers for each atom. The frames
/// have forces alone, because the file holds neither cells nor positions.
/// @throws InvalidInput naming file, line and what was expected
std::vector<ForceFrame> read_phono3py_forces(const std::filesystem::path& file);

}  // namespace quasi::thermal
