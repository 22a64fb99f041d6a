#pragma once

#include <array>
#include <filesystem>
#include <vector>

#include "workers/backend/study/convergence_limit.hpp"
#include "workers/thermal/solver/calculation/solve_case.hpp"

namespace quasi::thermal {

/// κ of one model on several meshes and with several widths, and both limits with their errors.
struct ConvergenceStudy {
  std::vector<Index3> mesh;         ///< [n_meshes], ascending; the case's own is the last
  std::vector<double> scale_broad;  ///< [n_widths], descending; the case's own is the first
  std::vector<Mat3>
      kappa_by_mesh;  ///< [n_meshes][nT] W/m/K: converged, or RTA without `convergence`
  std::vector<Mat3> kappa_by_width;  ///< [n_widths][nT] on the case's own mesh
  /// Diagonal elements, [nT][3].
  std::vector<std::array<ConvergenceLimit, 3>> mesh_limit;   ///< against 1/N
  std::vector<std::array<ConvergenceLimit, 3>> width_limit;  ///< against sb
};

/// Checks a study before anything is computed.
/// @throws InvalidInput where the options ask for a study that gives no limit.
void require_possible_study(const CaseOptions& options);

/// Solves a model on other meshes and, on its own mesh, with other widths. Meshes are given by the
/// divisions of the first axis, the others in proportion (`study_meshes`; default 1/2, 5/8, 3/4 and
/// 7/8 of its own), widths by `study_scalebroads` (default ¾ and ½ of its own).
/// @param own  the solved case, which is the last mesh and the first width
/// @throws NotConverged naming mesh and width of the case that did not converge.
ConvergenceStudy study_convergence(const LatticeModel& model, const CaseOptions& options,
                                   const CaseSite& site, const SolvedCase& own, Progress& progress);

}  // namespace quasi::thermal
