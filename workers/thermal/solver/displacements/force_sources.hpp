#pragma once

#include <functional>
#include <string>
#include <vector>

#include "workers/thermal/input/displacements/force_frame.hpp"
#include "workers/thermal/solver/displacements/finite_differences.hpp"

namespace quasi::thermal {

/// Returns the forces of a built-in potential on the sites of every cell of a plan.
/// @param name  "stillinger-weber": silicon [stillinger1985]
/// @throws InvalidInput if the name is unknown or the potential lacks an element of the crystal
PlanForces potential_forces(const DisplacementPlan& plan, const std::string& name);

/// Returns the names that potential_forces() knows.
std::vector<std::string> potential_names();

/// Returns −∂E/∂r of the Stillinger–Weber potential in a periodic cell, [atom], eV/Å.
std::vector<Vec3> stillinger_weber_forces(const PhonopyCell& cell);

/// Takes the forces of a plan from frames that another program computed.
/// @throws InvalidInput if the number of frames or atoms, the cell, an element or a position
/// differs
///         from the plan, or if the forces of a frame vanish or do not add up to zero
PlanForces checked_forces(const DisplacementPlan& plan, const std::vector<ForceFrame>& frames,
                          const std::string& file);

}  // namespace quasi::thermal
