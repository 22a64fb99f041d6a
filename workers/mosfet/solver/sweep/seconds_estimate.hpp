#pragma once

#include "workers/backend/device/device.hpp"
#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/model/structure.hpp"

namespace quasi::mosfet {

/// Estimates the seconds of a run on one device. It times the parts of the first bias point on the
/// deck's own mesh, which takes less than one point, and multiplies them by usual counts. Runs end
/// within a factor of three of it: the counts depend on bias and scattering.
/// @throws NotConverged if the equilibrium of the first point does not converge
double estimated_seconds(const Deck& deck, const Structure& structure, const Device& device);

}  // namespace quasi::mosfet
