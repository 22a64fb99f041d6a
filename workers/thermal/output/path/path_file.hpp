#pragma once

#include <filesystem>

#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// Begin here: writes the phonons along the path of a deck with interpolated rates into the group
/// /path of a result, and frequencies as the text dispersion.dat. It does nothing for decks without
/// a path.
void write_path(const Deck& deck, const ConductivityRun& run,
                const std::filesystem::path& directory, H5Writer& out);

}  // namespace quasi::thermal
