#pragma once

#include <filesystem>
#include <string>

#include "workers/gw/input/state_file.hpp"
#include "workers/gw/model/mean_field.hpp"

namespace quasi::gw {

/// Returns the states of a file WFN of BerkeleyGW or of a folder PREFIX.save.
/// @throws InvalidInput if the file or folder cannot be used
Wavefunctions load_states(const std::filesystem::path& path, const StateStorage& storage = {});

/// Returns the density (`kind` "RHO") or the local potential ("VSC") of a file of BerkeleyGW or of
/// a folder PREFIX.save.
PlaneWaveField load_field(const std::filesystem::path& path, const std::string& kind);

/// Returns V_xc of a file VXC of BerkeleyGW or of a folder PREFIX.save.
/// @param core_charge  XcDensity::kWithCore for a folder; a file is taken as it is
PlaneWaveField load_exchange_correlation(const std::filesystem::path& path, bool core_charge);

/// Returns the projectors of a file VKB of BerkeleyGW or of a folder PREFIX.save.
Projectors load_projectors(const std::filesystem::path& path);

}  // namespace quasi::gw
