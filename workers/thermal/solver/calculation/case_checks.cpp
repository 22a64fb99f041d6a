#include "workers/thermal/solver/calculation/case_checks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "workers/thermal/solver/calculation/findings.hpp"
#include "workers/thermal/solver/harmonic/force_constant_checks.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"

namespace quasi::thermal {
namespace {

constexpr double kPermutationWarning = 1e-6, kPermutationError = 5e-2;
constexpr double kChargeWarning_e = 0.01, kChargeError_e = 0.5;
constexpr double kGammaError = 0.05;  // of the highest ω
constexpr double kFarPosition = 2.0;  // fractional coordinate
constexpr double kClosest_nm = 0.05;  // of two atoms; the bond of H2 is 0.074 nm
// Distance of the strongest block over that of the nearest neighbours.
constexpr double kBondWarning = 1.1, kBondError = 1.5;
// This is the limit of forces. An atom that is moved by a tenth of its bond gives 0.02.
constexpr double kRotationWarning = 0.02, kRotationError = 0.2;
constexpr std::int64_t kFewProcesses = 10;  // a mode with fewer is not a sum over a continuum
constexpr double kFewWarning = 0.02, kFewError = 0.5;  // share of such modes
constexpr int kFewDivisions = 4;

/// Adds the sums and exchanges of constants of third or fourth order.
void check_sparse(const SparseForceConstants& fc, const std::string& order, Findings& findings) {
  const double sum = fc.tensor_sum_rule.value_or(sum_rule_violation(fc));
  const double exchange = permutation_violation(fc);
  findings.store("constants_" + order, sum <= 1e-6 && exchange <= kPermutationWarning,
                 {{"sum_rule", sum},
                  {"permutation", exchange},
                  {"limit", kPermutationWarning},
                  {"error_limit_permutation", kPermutationError},
                  {"blocks", fc.n_blocks()}});
  findings.report(severity_above(exchange, kPermutationWarning, kPermutationError),
                  "the constants of " + order + " order change by up to " + check_number(exchange) +
                      " of the largest element when two atoms are exchanged (limit " +
                      check_number(kPermutationError) +
                      "); a matrix element then depends on the order of its phonons",
                  findings.options.allow_broken_permutation, "allow_broken_permutation");
}

void check_second_order(const LatticeModel& model, double highest_rad_ps, Findings& findings) {
  const double at_gamma = findings.run.modes.largest_raw_omega_gamma_rad_ps;
  const double limit = kGammaError * highest_rad_ps;
  findings.store("constants_2nd", at_gamma < 0.5,
                 {{"acoustic_sum_as_read", model.second_order.raw_acoustic_sum},
                  {"acoustic_omega_at_gamma_rad_ps", at_gamma},
                  {"limit_rad_ps", 0.5},
                  {"error_limit_rad_ps", limit}});
  // The warning is that of the modes.
  if (at_gamma > limit)
    findings.report(Severity::kError,
                    "the acoustic modes at Γ have |ω| up to " + check_number(at_gamma) +
                        " rad/ps, above 5 % of the highest frequency: the sum rule of the "
                        "second-order constants is broken; acoustic_sum_rule = .true. imposes it",
                    findings.options.allow_broken_sum_rule, "allow_broken_sum_rule");
}

void check_charges(const Crystal& crystal, bool used, Findings& findings) {
  double charge = 0.0;
  double charge_sum = 0.0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      double sum = 0.0;
      for (const Mat3& z : crystal.born) {
        sum += z[i][j];
        charge = std::max(charge, std::fabs(z[i][j]));
      }
      charge_sum = std::max(charge_sum, std::fabs(sum));
    }
  if (charge == 0.0) return;
  findings.store("born_charges", charge_sum <= kChargeWarning_e,
                 {{"largest_e", charge},
                  {"sum_e", charge_sum},
                  {"limit_e", kChargeWarning_e},
                  {"error_limit_e", kChargeError_e},
                  {"used", used}});
  findings.report(
      severity_above(charge_sum, kChargeWarning_e, used ? kChargeError_e : 1e300),
      "the effective charges 'born' of the cell add up to " + check_number(charge_sum) +
          " e (limit " + check_number(kChargeError_e) +
          " e); translations then feel a field, and the acoustic modes near Γ are wrong",
      findings.options.allow_charge, "allow_charge");
}

/// Returns the smallest distance of two atoms in one cell and its neighbours, nm.
double closest_atoms_nm(const Crystal& crystal) {
  double closest = std::numeric_limits<double>::infinity();
  for (int atom = 0; atom < crystal.n_atoms(); ++atom)
    for (int other = 0; other < atom; ++other) {
      Vec3 d = crystal.position[atom] - crystal.position[other];
      for (double& x : d) x -= std::round(x);
      for (int i = -1; i <= 1; ++i)
        for (int j = -1; j <= 1; ++j)
          for (int k = -1; k <= 1; ++k)
            closest = std::min(
                closest, length(crystal.cartesian_nm(d) + crystal.lattice_vector_nm({i, j, k})));
    }
  return closest;
}

void check_positions(const LatticeModel& model, Findings& findings) {
  const BondCheck bonds = check_bonds(model.crystal, model.second_order);
  const double closest = closest_atoms_nm(model.crystal);
  const double reach = bonds.strongest_nm / bonds.nearest_nm;
  double farthest = 0.0;
  for (const Vec3& position : model.crystal.position)
    for (const double x : position) farthest = std::max(farthest, std::fabs(x));
  findings.store("positions",
                 reach <= kBondWarning && bonds.rotation <= kRotationWarning &&
                     farthest <= kFarPosition && closest >= kClosest_nm,
                 {{"nearest_neighbour_nm", bonds.nearest_nm},
                  {"strongest_block_nm", bonds.strongest_nm},
                  {"rotation", bonds.rotation},
                  {"rotation_limit", kRotationWarning},
                  {"rotation_error_limit", kRotationError},
                  {"largest_coordinate", farthest}});
  if (closest < kClosest_nm)
    findings.report(Severity::kError,
                    "'positions' puts two atoms " + check_number(closest) +
                        " nm apart, nearer than any bond (limit " + check_number(kClosest_nm) +
                        " nm)",
                    findings.options.allow_inconsistent_position, "allow_inconsistent_position");
  if (farthest > kFarPosition)
    findings.warn("'positions' holds the coordinate " + check_number(farthest) + " (usual limit " +
                  check_number(kFarPosition) +
                  "): positions are fractions of 'lattvec', not Å; are these?");
  const bool allowed = findings.options.allow_inconsistent_position;
  findings.report(severity_above(bonds.rotation, kRotationWarning, kRotationError),
                  "turning the whole crystal would exert forces of " +
                      std::to_string(static_cast<int>(100.0 * bonds.rotation + 0.5)) +
                      " % of what the second-order constants exert (limit 20 %): are 'positions' "
                      "and 'lattvec' those of the crystal that they were made for?",
                  allowed, "allow_inconsistent_position");
  findings.report(severity_above(reach, kBondWarning, kBondError),
                  "the largest second-order block joins atoms " + check_number(bonds.strongest_nm) +
                      " nm apart, the nearest neighbours are " + check_number(bonds.nearest_nm) +
                      " nm apart; do 'positions' belong to these constants?",
                  allowed, "allow_inconsistent_position");
}

void check_modes(const Symmetry& symmetry, double largest, Findings& findings) {
  const Modes& modes = findings.run.modes;
  std::int64_t imaginary = 0;
  for (const double omega : modes.omega_rad_ps) imaginary += omega < 0.0 ? 1 : 0;
  findings.store("modes", imaginary == 0,
                 {{"imaginary", imaginary},
                  {"lowest_omega_rad_ps", modes.most_negative_omega_rad_ps},
                  {"highest_omega_rad_ps", largest}});
  findings.store("star_symmetry", modes.star_deviation_rad_ps <= 1e-5 * largest,
                 {{"deviation_rad_ps", modes.star_deviation_rad_ps},
                  {"limit_rad_ps", 1e-5 * largest},
                  {"space_group", symmetry.space_group},
                  {"dropped_operations", symmetry.dropped.size()}});
}

/// Warns of axes with two or three divisions, whose κ is no approximation of that of a fine mesh.
void check_mesh(const QMesh& mesh, Findings& findings) {
  bool fine = true;
  for (const int n : mesh.n) fine &= n == 1 || n >= kFewDivisions;
  findings.store("mesh", fine,
                 {{"divisions", {mesh.n[0], mesh.n[1], mesh.n[2]}}, {"limit", kFewDivisions}});
  if (!fine)
    findings.warn("'ngrid' = " + std::to_string(mesh.n[0]) + " " + std::to_string(mesh.n[1]) + " " +
                  std::to_string(mesh.n[2]) + " has an axis with fewer than " +
                  std::to_string(kFewDivisions) +
                  " divisions: κ says little about the crystal; use a finer mesh");
}

}  // namespace

std::string check_number(double value) {
  std::ostringstream out;
  out.precision(3);
  out << value;
  return out.str();
}

nlohmann::json check_case(const LatticeModel& model, const CaseOptions& options,
                          ConductivityRun& run) {
  const double highest =
      *std::max_element(run.modes.omega_rad_ps.begin(), run.modes.omega_rad_ps.end());
  nlohmann::json checks;
  Findings findings{options.checks, run, checks};
  check_modes(model.symmetry, highest, findings);
  check_second_order(model, highest, findings);
  if (model.third_order.n_blocks() > 0) check_sparse(model.third_order, "3rd", findings);
  if (model.fourth_order) check_sparse(*model.fourth_order, "4th", findings);
  check_charges(model.crystal, options.transport.harmonic.nonanalytic, findings);
  check_positions(model, findings);
  check_plausibility(model, options, findings);
  if (!options.only_harmonic) check_mesh(model.symmetry.mesh, findings);
  return checks;
}

namespace {

/// Says that few modes have processes, with the key that decides it, and the remedy.
std::string few_processes_text(const ThreePhononProblem& problem, double share) {
  const std::string modes =
      std::to_string(static_cast<int>(100.0 * share + 0.5)) +
      " % of the modes have fewer than 10 three-phonon processes (limit 50 %)";
  if (problem.broadening == Broadening::kTetrahedra)
    return "'ngrid' is coarse for tetrahedra: " + modes + "; use a finer 'ngrid'";
  const bool fixed = problem.broadening == Broadening::kFixed;
  const std::string key = fixed ? "'sigma_thz'" : "'scalebroad'";
  const double value =
      fixed ? problem.scale_broad / (std::sqrt(2.0) * 2.0 * units::kPi) : problem.scale_broad;
  return key + " = " + check_number(value) + " is small for this mesh: " + modes +
         "; use a finer 'ngrid' or a larger " + key;
}

}  // namespace

std::int64_t check_broadening(const Transport& transport, const CheckOptions& options,
                              ConductivityRun& run, ThreePhononProblem& problem,
                              nlohmann::json& checks) {
  const double largest =
      *std::max_element(run.modes.omega_rad_ps.begin(), run.modes.omega_rad_ps.end());
  const auto kernels =
      make_three_phonon_kernels(Device{});  // counting a sample is a matter of milliseconds
  kernels->load(problem);
  std::vector<std::int64_t> sample;
  const std::int64_t n_rows = problem.n_rows();
  const std::int64_t n_sampled = std::min<std::int64_t>(n_rows, 96);
  for (std::int64_t i = 0; i < n_sampled; ++i) sample.push_back(i * n_rows / n_sampled);
  const std::vector<std::int64_t> counts = kernels->count(sample);
  std::int64_t counted = 0, few = 0, considered = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const std::int64_t of_row = counts[2 * i] + counts[2 * i + 1];
    counted += of_row;
    if (!transport.conducts(sample[i])) continue;
    ++considered;
    few += of_row < kFewProcesses ? 1 : 0;
  }
  const double share =
      considered > 0 ? static_cast<double>(few) / static_cast<double>(considered) : 0.0;
  const double sigma =
      problem.broadening == Broadening::kFixed
          ? problem.scale_broad
          : typical_sigma_rad_ps(run.modes, problem.scale_broad, problem.omega_max_rad_ps);
  Findings findings{options, run, checks};
  findings.store(
      "broadening", share <= kFewWarning,
      {{"typical_sigma_rad_ps", sigma},
       {"of_highest_omega", sigma / largest},
       {"processes_per_mode", static_cast<double>(counted) / static_cast<double>(n_sampled)},
       {"share_of_modes_with_fewer_than_10", share},
       {"limit", kFewWarning},
       {"error_limit", kFewError}});
  findings.report(severity_above(share, kFewWarning, kFewError), few_processes_text(problem, share),
                  options.allow_few_processes, "allow_few_processes");
  return static_cast<std::int64_t>(static_cast<double>(counted) * static_cast<double>(n_rows) /
                                   static_cast<double>(n_sampled));
}

}  // namespace quasi::thermal
