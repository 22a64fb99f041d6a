#include "workers/thermal/solver/calculation/convergence_study.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "workers/backend/error.hpp"
#include "workers/thermal/input/namelist_section.hpp"

namespace quasi::thermal {
namespace {

void append_kappa(const ConductivityRun& run, std::vector<Mat3>& kappa) {
  for (const TemperatureResult& r : run.by_temperature)
    kappa.push_back(r.converged ? r.kappa_w_per_mk : r.kappa_rta_w_per_mk);
}

constexpr int kLeastMesh =
    3;  ///< taken unasked: on coarser ones most operators are not even positive

std::vector<Index3> meshes_of(const Control& control) {
  std::vector<int> first = control.study_meshes;
  const int own = control.mesh[0];
  if (first.empty())
    for (const int eighths : {4, 5, 6, 7})
      first.push_back(std::max(kLeastMesh, (own * eighths + 4) / 8));
  first.push_back(own);
  std::sort(first.begin(), first.end());
  first.erase(std::unique(first.begin(), first.end()), first.end());
  if (first.front() < 2 || first.back() != own || first.size() < 3)
    throw InvalidInput(
        "a convergence study needs at least two meshes of 2 or more divisions below the deck's own "
        "'ngrid' (" +
        std::to_string(own) + " along the first axis); set 'study_meshes' or a finer 'ngrid'");
  std::vector<Index3> meshes;
  for (const int n : first) {
    Index3 mesh{n, 1, 1};
    for (int d = 1; d < 3; ++d)
      mesh[d] = std::max(
          1, static_cast<int>(std::lround(static_cast<double>(control.mesh[d]) * n / own)));
    meshes.push_back(mesh);
  }
  return meshes;
}

std::vector<double> widths_of(const Control& control) {
  std::vector<double> widths = control.study_scale_broads;
  if (widths.empty()) widths = {0.75 * control.scale_broad, 0.5 * control.scale_broad};
  widths.push_back(control.scale_broad);
  std::sort(widths.begin(), widths.end(), std::greater<>());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  if (widths.front() != control.scale_broad || widths.size() < 3)
    throw InvalidInput(
        "'study_scalebroads' must hold at least two widths below the deck's own 'scalebroad' = " +
        number_text(control.scale_broad));
  return widths;
}

std::vector<std::array<Extrapolation, 3>> limits(const std::vector<double>& x,
                                                 const std::vector<Mat3>& kappa, std::size_t n_t) {
  std::vector<std::array<Extrapolation, 3>> result(n_t);
  for (std::size_t t = 0; t < n_t; ++t)
    for (int d = 0; d < 3; ++d) {
      std::vector<double> y;
      for (std::size_t i = 0; i < x.size(); ++i) y.push_back(kappa[i * n_t + t][d][d]);
      result[t][d] = extrapolate_linear(x, y);
    }
  return result;
}

std::string name_of(const Control& control) {
  return "convergence study, mesh " + std::to_string(control.mesh[0]) + "x" +
         std::to_string(control.mesh[1]) + "x" + std::to_string(control.mesh[2]) + ", scalebroad " +
         number_text(control.scale_broad);
}

}  // namespace

void require_possible_study(const Control& control) {
  if (!control.convergence_study) return;
  if (control.only_harmonic)
    throw InvalidInput(
        "'convergence_study' (--converge) and 'onlyharmonic' exclude each other: there is no κ to "
        "study");
  meshes_of(control);
  widths_of(control);
}

ConvergenceStudy study_convergence(const Deck& deck, const std::vector<Device>& devices,
                                   Ranks& ranks, const SolvedCase& own,
                                   const std::filesystem::path& checkpoint_directory,
                                   Progress& progress) {
  ConvergenceStudy study{.mesh = meshes_of(deck.control), .scale_broad = widths_of(deck.control)};
  const std::size_t n_t = deck.control.temperatures_k.size();
  Deck other = deck;
  other.control.coherence = false;
  other.control.nanowires = false;
  other.control.isotope_factors.clear();
  other.control.grain_sizes_nm.clear();
  int n_cases = 0;
  const auto solve = [&](std::vector<Mat3>& kappa) {
    const std::filesystem::path place =
        checkpoint_directory / ("study_" + std::to_string(n_cases++));
    std::error_code failure;
    if (ranks.leads()) std::filesystem::create_directories(place, failure);
    if (failure) throw StorageError("cannot create '" + place.string() + "': " + failure.message());
    progress.log(name_of(other.control) + " (" + std::to_string(n_cases) + " of " +
                 std::to_string(study.mesh.size() + study.scale_broad.size() - 2) + ")");
    other.symmetry = find_symmetry(other.crystal, other.control.symmetry_options());
    try {
      append_kappa(solve_case(other, devices, ranks, place, progress).run, kappa);
    } catch (const NotConverged& ended) {
      throw NotConverged(name_of(other.control) + ": " + ended.what() +
                         "; choose 'study_meshes' and 'study_scalebroads' without it");
    }
  };
  for (std::size_t i = 0; i + 1 < study.mesh.size(); ++i) {
    other.control.mesh = study.mesh[i];
    solve(study.kappa_by_mesh);
  }
  append_kappa(own.run, study.kappa_by_mesh);
  append_kappa(own.run, study.kappa_by_width);
  other.control.mesh = deck.control.mesh;
  for (std::size_t i = 1; i < study.scale_broad.size(); ++i) {
    other.control.scale_broad = study.scale_broad[i];
    solve(study.kappa_by_width);
  }
  std::vector<double> inverse;
  for (const Index3& mesh : study.mesh) inverse.push_back(1.0 / mesh[0]);
  study.mesh_limit = limits(inverse, study.kappa_by_mesh, n_t);
  study.width_limit = limits(study.scale_broad, study.kappa_by_width, n_t);
  return study;
}

}  // namespace quasi::thermal
