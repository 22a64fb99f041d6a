#pragma once

#include <nlohmann/json.hpp>

#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/solver/four_phonon/four_phonon_run.hpp"

namespace quasi::thermal {

/// Returns the name of a broadening in decks and results.
const char* name_of(Broadening kind);

/// Writes rates, phase spaces, counts and rules of four-phonon scattering into an open result file.
void write_result_4ph(const Deck& deck, const FourPhononRun& run, H5Writer& out);

/// Adds the keys of four phonons to the `summary` of --json: processes_4ph and the rules in force.
void summarise_4ph(const FourPhononRun& run, nlohmann::json& summary);

}  // namespace quasi::thermal
