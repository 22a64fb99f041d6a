#pragma once

#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {

/// Seconds that ε and Σ will take on these devices: the units of work of the plan, counted, times
/// what one of each costs here, measured on a few pairs of the job's own states, box and spheres.
/// Takes the time of a few hundred pairs. Reading, writing, plasmon-pole models and symmetry are
/// not counted. Fills Plan::epsilon_seconds, sigma_seconds.
void estimate_seconds(const MeanField& field, DeviceTeam& team, Plan* plan);

/// "ε 12 s, Σ 3 s, 1.2 GiB of device memory, 0.4 GiB of the host's": the line before the work.
std::string cost_line(const Plan& plan);

}  // namespace quasi::gw
