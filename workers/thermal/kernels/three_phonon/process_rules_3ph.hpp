#pragma once

#include "workers/thermal/kernels/three_phonon/process_3ph.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"

namespace quasi::thermal {

/// The rules of a problem over mode data that lie where its kernels run.
/// @param omega_rad_ps   [n_modes], kInactive where a mode takes no part
/// @param spread_rad_ps  [n_modes][3]
inline ProcessRules3 rules_of(const ThreePhononProblem& problem, const double* omega_rad_ps,
                              const double* spread_rad_ps) {
  return {.omega_rad_ps = omega_rad_ps,
          .spread_rad_ps = spread_rad_ps,
          .broadening = problem.broadening,
          .scale_broad = problem.scale_broad,
          .window = problem.cut * problem.scale_broad * problem.cut * problem.scale_broad,
          .delta_norm = problem.delta_norm,
          .prefactor = problem.rate_constant / static_cast<double>(problem.mesh.size())};
}

}  // namespace quasi::thermal
