#include "workers/thermal/solver/calculation/convergence_study.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/backend/study/settings_ladder.hpp"
#include "workers/backend/study/study_runner.hpp"
#include "workers/thermal/input/control/namelist_section.hpp"

namespace quasi::thermal {
namespace {

void append_kappa(const ConductivityRun& run, std::vector<Mat3>& kappa) {
  for (const TemperatureResult& r : run.by_temperature)
    kappa.push_back(r.converged ? r.kappa_w_per_mk : r.kappa_rta_w_per_mk);
}

constexpr int kLeastMesh =
    3;  ///< taken unasked: on coarser ones most operators are not even positive
constexpr double kMeshShares[] = {0.5, 0.625, 0.75, 0.875};
constexpr double kWidthShares[] = {0.5, 0.75};
constexpr std::size_t kLeastSettings = 2;  ///< beside the deck's own: a limit needs three points

std::vector<Index3> meshes_of(const CaseOptions& options) {
  const Index3& own_mesh = options.symmetry.mesh;
  const int own = own_mesh[0];
  std::vector<double> listed(options.study.meshes.begin(), options.study.meshes.end());
  if (listed.empty())
    for (const double share : kMeshShares)
      listed.push_back(std::max(kLeastMesh, static_cast<int>(std::lround(share * own))));
  std::erase(listed, own);
  std::vector<Index3> meshes;
  for (const double n : settings_below(listed, own, {}, kLeastSettings, "'study_meshes'")) {
    if (n < 2.0)
      throw InvalidInput("'study_meshes' holds " + number_text(n) +
                         "; a mesh needs 2 or more divisions");
    Index3 mesh{static_cast<int>(n), 1, 1};
    for (int d = 1; d < 3; ++d)
      mesh[d] = std::max(1, static_cast<int>(std::lround(own_mesh[d] * n / own)));
    meshes.push_back(mesh);
  }
  meshes.push_back(own_mesh);
  return meshes;
}

/// Widths of the study in descending order, the case's own first.
std::vector<double> widths_of(const CaseOptions& options) {
  const double own = options.scale_broad();
  std::vector<double> listed = options.study.scale_broads;
  std::erase(listed, own);
  std::vector<double> widths =
      settings_below(listed, own, kWidthShares, kLeastSettings, "'study_scalebroads'");
  widths.push_back(own);
  std::reverse(widths.begin(), widths.end());
  return widths;
}

std::vector<std::array<ConvergenceLimit, 3>> limits(const std::vector<double>& x,
                                                    const std::vector<Mat3>& kappa,
                                                    std::size_t n_t) {
  std::vector<std::array<ConvergenceLimit, 3>> result(n_t);
  for (std::size_t t = 0; t < n_t; ++t)
    for (int d = 0; d < 3; ++d) {
      std::vector<double> y;
      for (std::size_t i = 0; i < x.size(); ++i) y.push_back(kappa[i * n_t + t][d][d]);
      result[t][d] = limit_of_fit(x, y);
    }
  return result;
}

std::string name_of(const CaseOptions& options) {
  const Index3& mesh = options.symmetry.mesh;
  return "mesh " + std::to_string(mesh[0]) + "x" + std::to_string(mesh[1]) + "x" +
         std::to_string(mesh[2]) + ", scalebroad " + number_text(options.scale_broad());
}

}  // namespace

void require_possible_study(const CaseOptions& options) {
  if (!options.study.enabled) return;
  if (options.only_harmonic)
    throw InvalidInput(
        "'convergence_study' (--converge) and 'onlyharmonic' exclude each other: there is no κ to "
        "study");
  meshes_of(options);
  widths_of(options);
}

ConvergenceStudy study_convergence(const LatticeModel& model, const CaseOptions& options,
                                   const CaseSite& site, const SolvedCase& own,
                                   Progress& progress) {
  ConvergenceStudy study{.mesh = meshes_of(options), .scale_broad = widths_of(options)};
  const std::size_t n_t = options.transport.temperatures_k.size();
  LatticeModel other_model = model;
  CaseOptions other = options;
  other.derivative = false;
  other.derivative_fourth_order = false;
  other.transport.coherence = false;
  other.transport.wires.enabled = false;
  other.transport.sweep = {};
  other.checks.allow_few_processes = true;  // coarse meshes and small widths are to be compared
  StudyRunner runner(site.checkpoint_directory, site.ranks, progress);
  const auto solve = [&](std::vector<Mat3>& kappa) {
    const std::filesystem::path place = runner.begin(name_of(other));
    other_model.symmetry = find_symmetry(other_model.crystal, other.symmetry);
    try {
      append_kappa(solve_case(other_model, other, {site.devices, site.ranks, place}, progress).run,
                   kappa);
    } catch (const NotConverged& ended) {
      throw NotConverged("convergence study, " + name_of(other) + ": " + ended.what() +
                         "; choose 'study_meshes' and 'study_scalebroads' without it");
    }
  };
  for (std::size_t i = 0; i + 1 < study.mesh.size(); ++i) {
    other.symmetry.mesh = study.mesh[i];
    solve(study.kappa_by_mesh);
  }
  append_kappa(own.run, study.kappa_by_mesh);
  append_kappa(own.run, study.kappa_by_width);
  other.symmetry.mesh = options.symmetry.mesh;
  for (std::size_t i = 1; i < study.scale_broad.size(); ++i) {
    other.set_scale_broad(study.scale_broad[i]);
    solve(study.kappa_by_width);
  }
  std::vector<double> inverse;
  for (const Index3& mesh : study.mesh) inverse.push_back(1.0 / mesh[0]);
  study.mesh_limit = limits(inverse, study.kappa_by_mesh, n_t);
  study.width_limit = limits(study.scale_broad, study.kappa_by_width, n_t);
  return study;
}

}  // namespace quasi::thermal
