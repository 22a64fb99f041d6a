#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "workers/backend/device/device.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// Writes every array of a run with its unit into an open result file: crystal, mesh, harmonic
/// modes, rates by kind of scattering, κ by temperature and by mode, cumulative κ, density of
/// states.
void write_result(const Deck& deck, const ConductivityRun& run, const Device& device,
                  H5Writer& out);

/// The `summary` of --json. κ is [nT][3][3]; kappa_w_per_mk is null when the BTE was not iterated.
nlohmann::json summarise(const Deck& deck, const ConductivityRun& run, const Device& device);

}  // namespace quasi::thermal
