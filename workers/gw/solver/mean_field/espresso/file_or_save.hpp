#pragma once

#include <filesystem>
#include <string>

#include "workers/gw/input/state_file.hpp"
#include "workers/gw/model/mean_field.hpp"

// These functions accept a file of BerkeleyGW (docs/theory/gw.md 1.1, 1.2) or a folder PREFIX.save
// of Quantum ESPRESSO (docs/theory/gw.md 1.5), and return the same data for both. They throw
// InvalidInput if a file or folder is missing or cannot be used.
namespace quasi::gw {

/// Returns the states of a file WFN or of a folder.
/// @param storage  memory for the states, and the folder for those that exceed it
Wavefunctions load_states(const std::filesystem::path& path, const StateStorage& storage = {});

/// Returns the density, electrons per cell, or the local potential, Ry, on plane waves.
/// @param kind  "RHO" for the density, "VSC" for the potential
PlaneWaveField load_field(const std::filesystem::path& path, const std::string& kind);

/// Returns V_xc of a file VXC or of a folder, Ry.
/// @param core_charge  true: V_xc of a folder is XcDensity::kWithCore; a file is taken as it is
PlaneWaveField load_exchange_correlation(const std::filesystem::path& path, bool core_charge);

/// Returns the projectors of a file VKB or of a folder.
Projectors load_projectors(const std::filesystem::path& path);

}  // namespace quasi::gw
