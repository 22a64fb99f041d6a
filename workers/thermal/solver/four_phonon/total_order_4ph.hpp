#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/model/symmetry.hpp"
#include "workers/thermal/model/total_order_4ph.hpp"

namespace quasi::thermal {

/// Returns the point to which each operation of the group maps each point, [operations][n_q].
std::vector<std::int32_t> images_of_points(const Symmetry& symmetry);

/// Orders the total momenta star by star. The rules must treat a process and its images alike, with
/// the symmetric width and velocities averaged over degenerate sets.
/// @param images  of images_of_points()
/// @return an empty order where the mesh is not folded
TotalOrder4ph order_totals_4ph(const Symmetry& symmetry, const std::vector<std::int32_t>& images);

}  // namespace quasi::thermal
