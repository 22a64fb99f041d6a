#pragma once

#include <optional>
#include <vector>

#include "workers/mosfet/input/stored_points.hpp"
#include "workers/mosfet/model/device_model.hpp"
#include "workers/mosfet/model/structure.hpp"
#include "workers/mosfet/solver/beam/beam_start.hpp"

namespace quasi::mosfet {

/// Returns the stored point of a bias as a start on the nodes of a structure. Potential and
/// quasi-Fermi levels are interpolated linearly. Subbands that the stored run lacks have the level
/// of its highest one.
/// @param points  of the same device, as read_stored_points() checks
/// @return nothing if no point has this bias
std::optional<BeamStart> stored_start(const std::vector<StoredPoint>& points, const BiasPoint& bias,
                                      const DeviceModel& model, const Structure& structure);

}  // namespace quasi::mosfet
