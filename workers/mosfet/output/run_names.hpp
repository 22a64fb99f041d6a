#pragma once

#include "workers/mosfet/model/run_settings.hpp"

/// Words of the output files and the summary for the choices of a deck.
namespace quasi::mosfet {

/// "equilibrium", "transient", "steady" or "mobility".
const char* mode_name(RunMode mode);

/// "boltzmann", "ballistic" or "drift-diffusion".
const char* transport_name(TransportModel model);

/// True for runs that end with a current at every point.
bool has_currents(const RunSettings& run);

}  // namespace quasi::mosfet
