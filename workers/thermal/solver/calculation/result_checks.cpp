// Checks κ after it is computed (docs/theory/thermal.md 12.4).

#include <algorithm>
#include <cmath>

#include "workers/thermal/solver/calculation/case_checks.hpp"
#include "workers/thermal/solver/calculation/findings.hpp"

namespace quasi::thermal {
namespace {

constexpr double kGroupWarning = 1e-3;                  // change of κ under the point group
constexpr double kLeastKappa = 0.01, kMostKappa = 1e4;  // W/m/K, at kWarm_k and above
constexpr double kWarm_k = 50.0;
constexpr double kNegativeKappa = 1e-6;   // of the largest element
constexpr double kHalfMeshWarning = 0.5;  // κ of every second point against all
constexpr int kFewDivisions = 8;          // half of them are the least mesh that says something

double largest_element(const Mat3& m) {
  double largest = 0.0;
  for (const Vec3& row : m)
    for (const double x : row) largest = std::max(largest, std::fabs(x));
  return largest;
}

double trace(const Mat3& m) { return m[0][0] + m[1][1] + m[2][2]; }

/// Returns the largest change of κ under the operations of the crystal, of its largest element. The
/// mesh may have fewer operations.
double group_deviation(const LatticeModel& model, const SymmetryOptions& options, const Mat3& k) {
  SymmetryOptions whole = options;
  whole.mesh = {1, 1, 1};

  const Mat3 mean = find_symmetry(model.crystal, whole).symmetrised(k);
  Mat3 apart = mean;
  for (int i = 0; i < 3; ++i) apart[i] = k[i] - mean[i];
  return largest_element(apart) / largest_element(k);
}

/// Returns the trace of κ in relaxation-time approximation from every second point along each axis,
/// over that of all points; 1 for meshes without such points.
double half_mesh_share(const QMesh& mesh, const Symmetry& symmetry, const TemperatureResult& result,
                       int n_branches) {
  double factor = 1.0;
  for (const int n : mesh.n) {
    if (n == 1) continue;
    if (n % 2 != 0 || n < kFewDivisions) return 1.0;
    factor *= 2.0;
  }
  double half = 0.0;
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(result.mode_kappa_rta.size()); ++row) {
    int c[3];
    mesh.coordinates(symmetry.irreducible[row / n_branches], c);
    if (c[0] % 2 == 0 && c[1] % 2 == 0 && c[2] % 2 == 0)
      half += trace(result.mode_kappa_rta[static_cast<std::size_t>(row)]);
  }
  return factor * half / trace(result.kappa_rta_w_per_mk);
}

void check_range(const TemperatureResult& result, const Mat3& k, Findings& findings) {
  const double mean = trace(k) / 3.0;
  const double least = std::min({k[0][0], k[1][1], k[2][2]});
  const bool negative = least < -kNegativeKappa * largest_element(k);
  const bool usual = result.temperature_k < kWarm_k || (mean >= kLeastKappa && mean <= kMostKappa);
  findings.store("kappa_range", usual && !negative,
                 {{"mean_w_per_mk", mean}, {"limits_w_per_mk", {kLeastKappa, kMostKappa}}});
  const std::string at = " at " + check_number(result.temperature_k) + " K";
  if (negative)
    findings.report(Severity::kError,
                    "κ has the diagonal element " + check_number(least) + " W/m/K" + at +
                        ", and heat cannot flow to the hotter side: the solution is wrong; use "
                        "'broadening' = symmetric and 'solver' = cg",
                    findings.options.allow_implausible, "allow_implausible");
  if (!usual)
    findings.warn("κ = " + check_number(mean) + " W/m/K" + at + " is outside that of crystals (" +
                  check_number(kLeastKappa) + " to " + check_number(kMostKappa) +
                  " W/m/K): are the force constants in eV and Å, and is the width right?");
}

}  // namespace

void check_result(const LatticeModel& model, const CaseOptions& options, ConductivityRun& run,
                  nlohmann::json& checks) {
  Findings findings{options.checks, run, checks};
  for (const TemperatureResult& result : run.by_temperature) {
    const Mat3& k = result.converged ? result.kappa_w_per_mk : result.kappa_rta_w_per_mk;
    if (largest_element(k) == 0.0) continue;
    check_range(result, k, findings);
    if (&result != &run.by_temperature.front()) continue;
    const double deviation = group_deviation(model, options.symmetry, k);
    findings.store("kappa_symmetry", deviation <= kGroupWarning,
                   {{"deviation", deviation}, {"limit", kGroupWarning}});
    if (deviation > kGroupWarning)
      findings.warn("κ changes by " + check_number(deviation) +
                    " of its largest element under the point group of the crystal (limit " +
                    check_number(kGroupWarning) +
                    "): the mesh 'ngrid' does not have its symmetry; choose divisions that do");
    const double half =
        half_mesh_share(model.symmetry.mesh, model.symmetry, result, run.modes.n_branches);
    findings.store("kappa_half_mesh", std::fabs(half - 1.0) <= kHalfMeshWarning,
                   {{"of_all_points", half}, {"limit", kHalfMeshWarning}});
    if (std::fabs(half - 1.0) > kHalfMeshWarning)
      findings.warn("every second point of the mesh gives " + check_number(half) +
                    " of κ (limit 1 ± " + check_number(kHalfMeshWarning) +
                    "): 'ngrid' is coarse; --converge extrapolates");
  }
}

}  // namespace quasi::thermal
