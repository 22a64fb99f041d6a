#pragma once

#include "workers/thermal/model/symmetry.hpp"
#include "workers/thermal/model/total_order_4ph.hpp"

namespace quasi::thermal {

/// Orders the total momenta star by star. The rules must treat a process and its images alike, with
/// the symmetric width and velocities averaged over degenerate sets.
/// @return an empty order where the mesh is not folded
TotalOrder4ph order_totals_4ph(const Symmetry& symmetry);

}  // namespace quasi::thermal
