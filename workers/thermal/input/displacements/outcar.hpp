#pragma once

#include <filesystem>

#include "workers/thermal/input/displacements/force_frame.hpp"

namespace quasi::thermal {

/// Reads cell, elements, positions and forces of the last ionic step of an OUTCAR of VASP. The file
/// rounds positions to 10⁻⁵ Å and forces to 10⁻⁶ eV/Å.
/// @throws InvalidInput naming file and what is missing or malformed, or if the last electronic
///         loop did not reach EDIFF
ForceFrame read_outcar(const std::filesystem::path& file);

}  // namespace quasi::thermal
