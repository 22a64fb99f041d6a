#include "workers/thermal/solver/calculation/case_checks.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <sstream>

#include "workers/thermal/solver/harmonic/canonical_vectors.hpp"
#include "workers/thermal/solver/harmonic/force_constant_checks.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"

namespace quasi::thermal {
namespace {

constexpr double kPermutationWarning = 1e-6;
constexpr double kChargeWarning_e = 0.01;
constexpr double kBondWarning =
    1.1;  // strongest block this much farther than the nearest neighbour
constexpr double kRotationWarning = 0.02;   // of forces: an atom moved by a tenth of its bond
constexpr std::int64_t kFewProcesses = 10;  // a mode with fewer is not a sum over a continuum
constexpr double kFewWarning = 0.02;        // share of such modes

constexpr double kLeastElastic_ev = 0.2, kMostElastic_ev = 60.0;
constexpr double kSlowestSound_km_s = 0.3, kFastestSound_km_s = 20.0;
constexpr int kFewDivisions = 4;

std::string number_text(double value) {
  std::ostringstream out;
  out.precision(3);
  out << value;
  return out.str();
}

nlohmann::json within(bool ok, nlohmann::json more) {
  more["ok"] = ok;
  return more;
}

void check_constants(const LatticeModel& model, bool nonanalytic, ConductivityRun& run,
                     nlohmann::json& checks) {
  const auto sparse = [&](const SparseForceConstants& fc, const std::string& order) {
    const double sum = fc.tensor_sum_rule.value_or(sum_rule_violation(fc));
    const double exchange = permutation_violation(fc);
    checks["constants_" + order] =
        within(sum <= 1e-6 && exchange <= kPermutationWarning, {{"sum_rule", sum},
                                                                {"permutation", exchange},
                                                                {"limit", kPermutationWarning},
                                                                {"blocks", fc.n_blocks()}});
    if (exchange > kPermutationWarning)
      run.warnings.push_back("the constants of " + order + " order change by up to " +
                             std::to_string(exchange) +
                             " of the largest element when two atoms are exchanged; a matrix "
                             "element then depends on the order of its phonons");
  };
  const double raw = model.second_order.raw_acoustic_sum;
  checks["constants_2nd"] =
      within(run.modes.largest_raw_omega_gamma_rad_ps < 0.5,
             {{"acoustic_sum_as_read", raw},
              {"acoustic_omega_at_gamma_rad_ps", run.modes.largest_raw_omega_gamma_rad_ps},
              {"limit_rad_ps", 0.5}});
  if (model.third_order.n_blocks() > 0) sparse(model.third_order, "3rd");
  if (model.fourth_order) sparse(*model.fourth_order, "4th");
  double charge = 0.0;
  double charge_sum = 0.0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      double sum = 0.0;
      for (const Mat3& z : model.crystal.born) {
        sum += z[i][j];
        charge = std::max(charge, std::fabs(z[i][j]));
      }
      charge_sum = std::max(charge_sum, std::fabs(sum));
    }
  if (charge > 0.0) {
    checks["born_charges"] = within(charge_sum <= kChargeWarning_e, {{"largest_e", charge},
                                                                     {"sum_e", charge_sum},
                                                                     {"limit_e", kChargeWarning_e},
                                                                     {"used", nonanalytic}});
    if (charge_sum > kChargeWarning_e)
      run.warnings.push_back(
          "the effective charges 'born' of the cell add up to " + std::to_string(charge_sum) +
          " e; translations then feel a field, and the acoustic modes near Γ are wrong");
  }
  const BondCheck bonds = check_bonds(model.crystal, model.second_order);
  const bool at_home = bonds.strongest_nm <= kBondWarning * bonds.nearest_nm;
  const bool turns = bonds.rotation <= kRotationWarning;
  checks["positions"] = within(at_home && turns, {{"nearest_neighbour_nm", bonds.nearest_nm},
                                                  {"strongest_block_nm", bonds.strongest_nm},
                                                  {"rotation", bonds.rotation},
                                                  {"rotation_limit", kRotationWarning}});
  if (!turns)
    run.warnings.push_back("turning the whole crystal would exert forces of " +
                           std::to_string(static_cast<int>(100.0 * bonds.rotation + 0.5)) +
                           " % of what the second-order constants exert: are 'positions' and "
                           "'lattvec' those of the crystal that "
                           "they were made for?");
  if (!at_home)
    run.warnings.push_back(
        "the largest second-order block joins atoms " + std::to_string(bonds.strongest_nm) +
        " nm apart, the nearest neighbours are " + std::to_string(bonds.nearest_nm) +
        " nm apart; do 'positions' belong to these constants?");
}

void check_modes(const Symmetry& symmetry, const ConductivityRun& run, double largest,
                 nlohmann::json& checks) {
  std::int64_t imaginary = 0;
  for (const double omega : run.modes.omega_rad_ps) imaginary += omega < 0.0 ? 1 : 0;
  checks["modes"] =
      within(imaginary == 0, {{"imaginary", imaginary},
                              {"lowest_omega_rad_ps", run.modes.most_negative_omega_rad_ps},
                              {"highest_omega_rad_ps", largest}});
  checks["star_symmetry"] = within(run.modes.star_deviation_rad_ps <= 1e-5 * largest,
                                   {{"deviation_rad_ps", run.modes.star_deviation_rad_ps},
                                    {"limit_rad_ps", 1e-5 * largest},
                                    {"space_group", symmetry.space_group},
                                    {"dropped_operations", symmetry.dropped.size()}});
}

/// Adds the elastic energy and the sound speeds, which show second-order constants in wrong units.
void check_sound(const LatticeModel& model, const HarmonicOptions& options, ConductivityRun& run,
                 nlohmann::json& checks) {
  const SoundSpeeds sound = sound_speeds(model, options);
  const bool energy =
      sound.elastic_energy_ev >= kLeastElastic_ev && sound.elastic_energy_ev <= kMostElastic_ev;
  const bool speeds =
      sound.slowest_km_s >= kSlowestSound_km_s && sound.fastest_km_s <= kFastestSound_km_s;
  checks["sound"] =
      within(energy && speeds, {{"slowest_km_s", sound.slowest_km_s},
                                {"fastest_km_s", sound.fastest_km_s},
                                {"elastic_energy_ev", sound.elastic_energy_ev},
                                {"limits_km_s", {kSlowestSound_km_s, kFastestSound_km_s}},
                                {"limits_ev", {kLeastElastic_ev, kMostElastic_ev}}});
  if (!energy)
    run.warnings.push_back(
        "the elastic energy per atom m<v²> = " + number_text(sound.elastic_energy_ev) +
        " eV is outside that of crystals (" + number_text(kLeastElastic_ev) + " to " +
        number_text(kMostElastic_ev) +
        " eV): are the second-order constants in eV/Å², and are 'lfactor' and the masses right?");
  if (!speeds)
    run.warnings.push_back(
        "the sound speeds of " + number_text(sound.slowest_km_s) + " to " +
        number_text(sound.fastest_km_s) + " km/s are outside those of crystals (" +
        number_text(kSlowestSound_km_s) + " to " + number_text(kFastestSound_km_s) +
        " km/s): are the second-order constants in eV/Å², and are 'lfactor' and the masses right?");
}

/// Warns of axes with two or three divisions, whose κ is no approximation of that of a fine mesh.
void check_mesh(const QMesh& mesh, ConductivityRun& run, nlohmann::json& checks) {
  bool fine = true;
  for (const int n : mesh.n) fine &= n == 1 || n >= kFewDivisions;
  checks["mesh"] =
      within(fine, {{"divisions", {mesh.n[0], mesh.n[1], mesh.n[2]}}, {"limit", kFewDivisions}});
  if (!fine)
    run.warnings.push_back("'ngrid' = " + std::to_string(mesh.n[0]) + " " +
                           std::to_string(mesh.n[1]) + " " + std::to_string(mesh.n[2]) +
                           " has an axis with fewer than " + std::to_string(kFewDivisions) +
                           " divisions: κ says little about the crystal; use a finer mesh");
}

}  // namespace

SoundSpeeds sound_speeds(const LatticeModel& model, const HarmonicOptions& options) {
  constexpr double kStep = 0.01;                         // of a reciprocal vector
  constexpr double kEv_per_amu_km2_s2 = 0.010364269656;  // CODATA 2018
  const DynamicalMatrixBuilder builder(model.crystal, model.second_order, options);
  const int nb = model.crystal.n_branches();
  const Mat3 to_cartesian = transpose(model.crystal.reciprocal_per_nm());
  std::vector<double> values(static_cast<std::size_t>(nb));
  std::vector<std::complex<double>> vectors(static_cast<std::size_t>(nb) * nb);
  SoundSpeeds sound{.slowest_km_s = 1e300};
  double squares = 0.0;
  int count = 0;
  for (int i = -1; i <= 1; ++i)
    for (int j = -1; j <= 1; ++j)
      for (int k = -1; k <= 1; ++k) {
        if (i == 0 && j == 0 && k == 0) continue;
        const Vec3 q{kStep * i, kStep * j, kStep * k};
        diagonalise_hermitian(nb, builder.at(q, false).d, values.data(), vectors.data());
        const double wave = length(to_cartesian * q);
        for (int s = 0; s < 3; ++s) {
          const double square = std::max(0.0, values[static_cast<std::size_t>(s)]) / (wave * wave);
          sound.slowest_km_s = std::min(sound.slowest_km_s, std::sqrt(square));
          sound.fastest_km_s = std::max(sound.fastest_km_s, std::sqrt(square));
          squares += square;
          ++count;
        }
      }
  double mass = 0.0;
  for (const double m : model.crystal.mass_amu) mass += m / model.crystal.n_atoms();
  sound.elastic_energy_ev = kEv_per_amu_km2_s2 * mass * squares / count;
  return sound;
}

nlohmann::json check_case(const LatticeModel& model, const CaseOptions& options,
                          ConductivityRun& run) {
  const double largest =
      *std::max_element(run.modes.omega_rad_ps.begin(), run.modes.omega_rad_ps.end());
  nlohmann::json checks;
  check_modes(model.symmetry, run, largest, checks);
  check_constants(model, options.transport.harmonic.nonanalytic, run, checks);
  check_sound(model, options.transport.harmonic, run, checks);
  if (!options.only_harmonic) check_mesh(model.symmetry.mesh, run, checks);
  return checks;
}

std::int64_t check_broadening(const Transport& transport, ConductivityRun& run,
                              ThreePhononProblem& problem, nlohmann::json& checks) {
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
      typical_sigma_rad_ps(run.modes, problem.scale_broad, problem.omega_max_rad_ps);
  checks["broadening"] =
      within(share <= kFewWarning,
             {{"typical_sigma_rad_ps", sigma},
              {"of_highest_omega", sigma / largest},
              {"processes_per_mode", static_cast<double>(counted) / static_cast<double>(n_sampled)},
              {"share_of_modes_with_fewer_than_10", share},
              {"limit", kFewWarning}});
  if (share > kFewWarning)
    run.warnings.push_back(
        "'scalebroad' = " + std::to_string(problem.scale_broad) +
        " is small for this mesh: " + std::to_string(static_cast<int>(100.0 * share + 0.5)) +
        " % of the modes have fewer than 10 three-phonon processes; use a finer 'ngrid' or a "
        "larger 'scalebroad'");
  return static_cast<std::int64_t>(static_cast<double>(counted) * static_cast<double>(n_rows) /
                                   static_cast<double>(n_sampled));
}

}  // namespace quasi::thermal
