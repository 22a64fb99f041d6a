#pragma once

#include "workers/thermal/model/symmetry.hpp"
#include "workers/thermal/model/total_order_4ph.hpp"

namespace quasi::thermal {

/// Total momenta star by star. For rules under which a process and its images are alike: the
/// symmetric width, and velocities averaged over degenerate sets.
/// @return nothing where the mesh is not folded.
TotalOrder4ph order_totals_4ph(const Symmetry& symmetry);

}  // namespace quasi::thermal
