#pragma once

#include <filesystem>

#include "workers/thermal/input/displacements/force_frame.hpp"

namespace quasi::thermal {

/// Reads cell, elements, positions and forces of the last ionic step of a vasprun.xml of VASP.
/// @throws InvalidInput naming file and what is missing or malformed, or if the electronic steps
///         reached NELM, so that the forces are not converged
ForceFrame read_vasprun(const std::filesystem::path& file);

}  // namespace quasi::thermal
