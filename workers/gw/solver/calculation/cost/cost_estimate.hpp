#pragma once

#include <map>
#include <string>

#include "workers/gw/solver/calculation/gw_calculation.hpp"

// The folder workers/gw/solver/calculation/cost predicts the seconds of a job. Begin here.
// cost_samples.hpp measures the cost of one unit of work.
namespace quasi::gw {

/// Estimates the seconds that ε and Σ take on the devices of a team (docs/theory/gw.md 12) and
/// fills Plan::epsilon_seconds and Plan::sigma_seconds. The units of work of the plan are counted.
/// The cost of one unit is measured on a few pairs of the job's own states, box and spheres, which
/// takes the time of a few hundred pairs. Reading, writing, plasmon-pole models and symmetry are
/// not counted.
/// @param samples  CoulombOptions::subsampling
/// @return the seconds that the estimate itself takes, by step
std::map<std::string, double> estimate_seconds(const MeanField& field, DeviceTeam& team,
                                               int samples, Plan* plan);

/// Counts the work of the sub-sampling of q → 0 in a slab, which is added to the work of the
/// grid.
struct SamplingWork {
  double epsilon_states = 0.0;  ///< diagonalisations of H at k + q
  double sigma_points = 0.0;    ///< (k, q) of Σ at the samples, and those of the grid once more
  double sigma_states = 0.0;    ///< diagonalisations of H at k − q
  double state_s = 0.0;         ///< seconds of a diagonalisation
};
/// Counts the work of a number of samples, and times a small diagonalisation on the device of
/// `kernels`. The result is zero for no samples.
SamplingWork sampling_work(const MeanField& field, const SigmaOptions& options, int samples,
                           GwKernels& kernels);

/// Formats the estimate as the line that a job logs before its work: "estimate: ε 12 s, Σ 3 s,
/// …".
std::string cost_line(const Plan& plan);

}  // namespace quasi::gw
