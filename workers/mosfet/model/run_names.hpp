#pragma once

#include "workers/mosfet/model/run_settings.hpp"

/// Names of a deck's choices in the output files and the summary.
namespace quasi::mosfet {

/// Returns "equilibrium", "transient", "steady" or "mobility".
const char* mode_name(RunMode mode);

/// Returns "boltzmann", "ballistic" or "drift-diffusion".
const char* transport_name(TransportModel model);

/// Returns true for runs that end with a current at every point.
bool has_currents(const RunSettings& run);

}  // namespace quasi::mosfet
