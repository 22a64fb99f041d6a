#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "workers/io/hdf5.hpp"
#include "workers/thermal/solver/transport/derived.hpp"

namespace quasi::thermal {

/// Adds coherences, spectra, Grüneisen parameters, wires and the sweep to result.h5 and to the
/// summary.
void write_result_derived(const Deck& deck, const ConductivityRun& run, const Derived& derived,
                          H5Writer& out);
void summarise_derived(const Deck& deck, const Derived& derived, nlohmann::json& summary);

/// Of such a summary, for people: the sweep and the wires, what is iterated where it is; "" where
/// there are neither.
std::string derived_table(const nlohmann::json& summary);

}  // namespace quasi::thermal
