#pragma once

#include <filesystem>

#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/perturbation/mode_elements.hpp"

namespace quasi::gw {

/// Writes |g| of all modes, k and pairs of bands in the text layout that EPW prints with `prtgkk`:
/// g_mean_field.dat and, where the crystal has V_xc, g_gw.dat (docs/reference/gw.md, "Files for
/// electron-phonon programs"). Values are averaged over degenerate modes and bands. Rigid shifts
/// have 0. @throws StorageError
void write_vertices(const std::filesystem::path& directory, const ModeElements& phonons,
                    const DisplacementElements& displaced, const MeanField& field);

}  // namespace quasi::gw
