#pragma once

#include <map>
#include <vector>

#include "workers/thermal/solver/displacements/displacement_plan.hpp"

namespace quasi::thermal {

/// Holds the forces on the sites of the displaced supercells of a plan, [cell][site], eV/Å.
using PlanForces = std::vector<std::vector<Vec3>>;

/// Constants of one order: the tensor of every cluster whose first site lies in the origin cell,
/// 3^order elements with the last index fastest, eV/Å^order.
using ClusterConstants = std::map<Cluster, std::vector<double>>;

/// Returns the constants of one order by central differences of forces (docs/theory/thermal.md 15):
///
///   Φ_{α₁…αₙ}(1…n) = −(2h)^{1−n} Σ_s s₁…s_{n−1} F_{nαₙ}(s₁h along α₁ at 1, …, s_{n−1}h at n−1)
///
/// They obey the space group and the exchange of indices to rounding. Their sums over a site vanish
/// as far as the forces and the cutoff allow.
/// @param forces  as many cells and sites as the plan has
ClusterConstants finite_differences(const DisplacementPlan& plan, const PlanForces& forces,
                                    int order);

}  // namespace quasi::thermal
