#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "workers/backend/device/device.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// Begin here: writes every array of a run with its unit into an open result file. These are
/// crystal, mesh, harmonic modes, rates by kind of scattering, κ by temperature and by mode,
/// cumulative κ and density of states. The other files add derived quantities and the formats of
/// other programs.
void write_result(const Deck& deck, const ConductivityRun& run, H5Writer& out);

/// Writes the part that describes the job: program, crystal, mesh and settings.
void write_inputs(const Deck& deck, H5Writer& out);

/// Returns the `summary` of --json. κ is [nT][3][3]; kappa_w_per_mk is null if the BTE was not
/// iterated.
nlohmann::json summarise(const Deck& deck, const ConductivityRun& run, const Device& device);

}  // namespace quasi::thermal
