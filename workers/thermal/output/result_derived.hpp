#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/solver/transport/derived.hpp"

namespace quasi::thermal {

/// Adds coherences, spectra, Grüneisen parameters, wires and the sweep to result.h5 and to the
/// summary.
void write_result_derived(const Deck& deck, const ConductivityRun& run, const Derived& derived,
                          H5Writer& out);
/// Adds the derived quantities to the summary.
void summarise_derived(const Deck& deck, const Derived& derived, nlohmann::json& summary);

/// Formats the sweep and the wires of such a summary for people, with iterated values if there are
/// any. Returns "" if the summary has neither.
std::string derived_table(const nlohmann::json& summary);

}  // namespace quasi::thermal
