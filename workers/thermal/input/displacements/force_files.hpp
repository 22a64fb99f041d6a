#pragma once

#include <filesystem>
#include <vector>

#include "workers/thermal/input/displacements/force_frame.hpp"

namespace quasi::thermal {

/// Reads the forces of a file. Its content says which program wrote it: vasprun.xml and OUTCAR of
/// VASP, the text and data-file-schema.xml of Quantum ESPRESSO, FORCES_FC2 and FORCES_FC3 of
/// phono3py, and extended XYZ in all other cases. Files of VASP and Quantum ESPRESSO give one
/// frame. Frames of phono3py have neither cell nor positions.
/// @throws InvalidInput naming file, what was expected and the remedy
std::vector<ForceFrame> read_force_file(const std::filesystem::path& file);

}  // namespace quasi::thermal
