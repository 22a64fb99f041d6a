#pragma once

#include "workers/backend/host_device.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"

namespace quasi::mosfet {

/// Returns true for the directions that enter at the source (side 0) or the drain (side 1).
QUASI_HD inline bool enters(double cos_phi, int side) {
  return side == 0 ? cos_phi > 0.0 : cos_phi < 0.0;
}

/// Returns the factor of the inflow of a contact whose column holds `rest` electrons that do not
/// enter (docs/theory/mosfet.md 6).
QUASI_HD inline double inflow_scale(const PointBoundary::Neutral& neutral, double rest) {
  return (neutral.sheet - rest) / neutral.entering;
}

}  // namespace quasi::mosfet
