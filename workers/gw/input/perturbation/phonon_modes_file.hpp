#pragma once

#include <filesystem>
#include <vector>

#include "workers/gw/model/phonon_modes.hpp"

namespace quasi::gw {

/// Reads the phonon modes at q = 0 of the result.h5 of a thermal job, or of a modes file in TOML
/// (docs/reference/gw.md, "Phonon modes"). The file's first bytes tell which of both it is.
/// @throws InvalidInput naming the file and the field if one is missing, has another unit or
/// another shape, or if the file holds no q = 0
PhononModes read_phonon_modes(const std::filesystem::path& path);

/// Reads the phonon modes at all wave vectors of such a file: those of the mesh of a thermal job,
/// or the one q of a modes file.
/// @throws InvalidInput as read_phonon_modes() does, except for a file without q = 0
std::vector<PhononModes> read_phonon_modes_at_q(const std::filesystem::path& path);

}  // namespace quasi::gw
