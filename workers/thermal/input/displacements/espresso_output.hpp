#pragma once

#include <filesystem>

#include "workers/thermal/input/displacements/force_frame.hpp"

namespace quasi::thermal {

/// Reads cell, labels, positions and forces from the text that pw.x of Quantum ESPRESSO prints. The
/// units alat and Ry/bohr are converted.
/// @throws InvalidInput naming file and what is missing or malformed, if the electrons did not
///         converge, or if the file holds several sets of forces
ForceFrame read_espresso_text(const std::filesystem::path& file);

/// Reads cell, labels, positions and forces of the last step from data-file-schema.xml of Quantum
/// ESPRESSO, which is in atomic units of Hartree.
/// @throws InvalidInput as read_espresso_text()
ForceFrame read_espresso_xml(const std::filesystem::path& file);

}  // namespace quasi::thermal
