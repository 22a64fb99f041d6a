#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/solver/calculation/case_checks.hpp"
#include "workers/thermal/solver/calculation/findings.hpp"
#include "workers/thermal/solver/harmonic/canonical_vectors.hpp"
#include "workers/thermal/solver/harmonic/force_constant_checks.hpp"
#include "workers/thermal/solver/harmonic/gruneisen.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"

namespace quasi::thermal {
namespace {

constexpr double kLeastElastic_ev = 0.2, kMostElastic_ev = 60.0;
constexpr double kLeastElasticError_ev = 0.02, kMostElasticError_ev = 600.0;
// Crystals whose atoms are nearer than this are bound more strongly than rare gases.
constexpr double kBonded_nm = 0.3, kLeastBonded_ev = 0.8;
constexpr double kSlowestSound_km_s = 0.3, kFastestSound_km_s = 20.0;
constexpr double kSlowestSoundError_km_s = 0.05, kFastestSoundError_km_s = 50.0;
constexpr double kMedianGruneisenWarning = 4.0, kMedianGruneisenError = 10.0;
constexpr double kModeGruneisenWarning = 20.0;
constexpr double kVacuum_nm = 0.8;  // layers of crystals are at most 0.7 nm apart

Severity worse(Severity a, Severity b) { return a > b ? a : b; }

Severity severity_below(double value, double warning, double error) {
  return severity_above(-value, -warning, -error);
}

/// Returns true for a mesh with one division along an axis, as a sheet has it.
bool is_sheet(const QMesh& mesh) { return mesh.n[0] == 1 || mesh.n[1] == 1 || mesh.n[2] == 1; }

bool has_hydrogen(const Crystal& crystal) {
  return std::any_of(crystal.mass_amu.begin(), crystal.mass_amu.end(),
                     [](double mass) { return mass < 3.5; });
}

/// Adds the elastic energy and the sound speeds, which show second-order constants in wrong units.
void check_sound(const LatticeModel& model, const CaseOptions& options, Findings& findings) {
  const SoundSpeeds sound = sound_speeds(model, options.transport.harmonic);
  const BondCheck bonds = check_bonds(model.crystal, model.second_order);
  const bool sheet = is_sheet(model.symmetry.mesh);
  const bool bonded = bonds.nearest_nm < kBonded_nm && !has_hydrogen(model.crystal) && !sheet;
  const double least_ev = bonded ? kLeastBonded_ev : kLeastElastic_ev;
  const Severity energy =
      worse(severity_below(sound.elastic_energy_ev, least_ev, kLeastElasticError_ev),
            severity_above(sound.elastic_energy_ev, kMostElastic_ev, kMostElasticError_ev));
  // Bending waves of a sheet have no speed of sound.
  const Severity slow =
      sheet ? Severity::kNone
            : severity_below(sound.slowest_km_s, kSlowestSound_km_s, kSlowestSoundError_km_s);
  const Severity speeds =
      worse(slow, severity_above(sound.fastest_km_s, kFastestSound_km_s, kFastestSoundError_km_s));
  findings.store("sound", energy == Severity::kNone && speeds == Severity::kNone,
                 {{"slowest_km_s", sound.slowest_km_s},
                  {"fastest_km_s", sound.fastest_km_s},
                  {"elastic_energy_ev", sound.elastic_energy_ev},
                  {"limits_km_s", {kSlowestSound_km_s, kFastestSound_km_s}},
                  {"limits_ev", {least_ev, kMostElastic_ev}},
                  {"error_limits_km_s", {kSlowestSoundError_km_s, kFastestSoundError_km_s}},
                  {"error_limits_ev", {kLeastElasticError_ev, kMostElasticError_ev}}});
  const std::string question =
      ": are the second-order constants in eV/Å², and are 'lfactor' and the masses right?";
  const bool allowed = findings.options.allow_implausible;
  findings.report(energy,
                  "the elastic energy per atom m<v²> = " + check_number(sound.elastic_energy_ev) +
                      " eV is outside that of such crystals (" + check_number(least_ev) + " to " +
                      check_number(kMostElastic_ev) + " eV)" + question,
                  allowed, "allow_implausible");
  findings.report(speeds,
                  "the sound speeds of " + check_number(sound.slowest_km_s) + " to " +
                      check_number(sound.fastest_km_s) + " km/s are outside those of crystals (" +
                      check_number(kSlowestSound_km_s) + " to " + check_number(kFastestSound_km_s) +
                      " km/s)" + question,
                  allowed, "allow_implausible");
}

/// Sizes |γ| of the modes above a fifth of the highest frequency. Softer modes are left out: γ
/// grows as 1/ω², so a few of them say more about an instability than about units.
struct GruneisenSizes {
  double median = 0.0;  ///< weighted by heat capacity; at most `largest`
  double largest = 0.0;
};

GruneisenSizes gruneisen_sizes(const Transport& transport, const std::vector<double>& gamma,
                               double temperature_k) {
  const Modes& modes = transport.modes;
  const double highest = *std::max_element(modes.omega_rad_ps.begin(), modes.omega_rad_ps.end());
  std::vector<std::pair<double, double>> size_and_weight;
  double total = 0.0;
  for (std::int64_t row = 0; row < transport.n_rows(); ++row) {
    const double omega = modes.omega_rad_ps[transport.mode_of_row(row)];
    if (omega <= 0.2 * highest) continue;
    const double weight =
        transport.symmetry.multiplicity[row / modes.n_branches] *
        heat_capacity_kb(omega, temperature_k, transport.options.constants().hbar_over_kb_k_ps());
    size_and_weight.emplace_back(std::fabs(gamma[static_cast<std::size_t>(row)]), weight);
    total += weight;
  }
  GruneisenSizes sizes;
  std::sort(size_and_weight.begin(), size_and_weight.end());
  double passed = 0.0;
  for (const auto& [size, weight] : size_and_weight) {
    if (passed < 0.5 * total) sizes.median = size;
    passed += weight;
    sizes.largest = size;
  }
  return sizes;
}

/// Adds the Grüneisen parameters, which show third-order constants in wrong units.
void check_gruneisen(const LatticeModel& model, const CaseOptions& options, Findings& findings) {
  const Transport transport{model.crystal, model.symmetry, findings.run.modes, options.transport};
  const std::vector<double> gamma = gruneisen_parameters(transport, model.third_order);
  const auto& temperatures = options.transport.temperatures_k;
  const double hottest_k = *std::max_element(temperatures.begin(), temperatures.end());
  const auto [median, largest] = gruneisen_sizes(transport, gamma, hottest_k);
  const Severity severity =
      worse(severity_above(median, kMedianGruneisenWarning, kMedianGruneisenError),
            largest > kModeGruneisenWarning ? Severity::kWarning : Severity::kNone);
  findings.store("gruneisen", severity == Severity::kNone,
                 {{"mean", mean_gruneisen(transport, gamma, hottest_k)},
                  {"median", median},
                  {"largest", largest},
                  {"limit_median", kMedianGruneisenWarning},
                  {"error_limit_median", kMedianGruneisenError},
                  {"limit_largest", kModeGruneisenWarning}});
  findings.report(severity,
                  "the Grüneisen parameter has the size " + check_number(median) +
                      " in the median (limit " + check_number(kMedianGruneisenWarning) +
                      ") and up to " + check_number(largest) + " (limit " +
                      check_number(kModeGruneisenWarning) +
                      "), more than crystals have: are the third-order constants in eV/Å³, and do "
                      "they belong to this crystal?",
                  findings.options.allow_implausible, "allow_implausible");
}

/// Returns the widest layer without atoms across one of the three lattice vectors, nm.
double widest_gap_nm(const Crystal& crystal) {
  double widest = 0.0;
  const Mat3 reciprocal = crystal.reciprocal_per_nm();
  for (int axis = 0; axis < 3; ++axis) {
    std::vector<double> heights;
    for (const Vec3& position : crystal.position)
      heights.push_back(position[axis] - std::floor(position[axis]));
    std::sort(heights.begin(), heights.end());
    heights.push_back(heights.front() + 1.0);
    const double spacing_nm = 2.0 * units::kPi / length(reciprocal[axis]);
    for (std::size_t i = 1; i < heights.size(); ++i)
      widest = std::max(widest, (heights[i] - heights[i - 1]) * spacing_nm);
  }
  return widest;
}

/// Gives a hint where a slab with vacuum is run as a bulk crystal.
void check_vacuum(const Crystal& crystal, Findings& findings) {
  const double gap = widest_gap_nm(crystal);
  const bool slab = findings.options.bulk && gap > kVacuum_nm;
  findings.store("vacuum", !slab, {{"widest_gap_nm", gap}, {"limit_nm", kVacuum_nm}});
  if (slab)
    findings.warn("the cell has a layer of " + check_number(gap) + " nm without atoms (limit " +
                  check_number(kVacuum_nm) +
                  " nm), and κ is quoted for the volume with it: for a sheet set "
                  "'sheet_thickness_nm', and one division of 'ngrid' across it");
}

}  // namespace

SoundSpeeds sound_speeds(const LatticeModel& model, const HarmonicOptions& options) {
  constexpr double kStep = 0.01;                         // of a reciprocal vector
  constexpr double kEv_per_amu_km2_s2 = 0.010364269656;  // CODATA 2018
  const DynamicalMatrixBuilder builder(model.crystal, model.second_order, options);
  const int nb = model.crystal.n_branches();
  const Mat3 to_cartesian = transpose(model.crystal.reciprocal_per_nm());
  const auto& n = model.symmetry.mesh.n;
  std::vector<double> values(static_cast<std::size_t>(nb));
  std::vector<std::complex<double>> vectors(static_cast<std::size_t>(nb) * nb);
  SoundSpeeds sound{.slowest_km_s = 1e300};
  double squares = 0.0;
  int count = 0;
  for (int i = -1; i <= 1; ++i)
    for (int j = -1; j <= 1; ++j)
      for (int k = -1; k <= 1; ++k) {
        const bool across = (i != 0 && n[0] == 1) || (j != 0 && n[1] == 1) || (k != 0 && n[2] == 1);
        if ((i == 0 && j == 0 && k == 0) || across) continue;
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
  if (count > 0) sound.elastic_energy_ev = kEv_per_amu_km2_s2 * mass * squares / count;
  return sound;
}

void check_plausibility(const LatticeModel& model, const CaseOptions& options, Findings& findings) {
  const auto& n = model.symmetry.mesh.n;
  if (n[0] * n[1] * n[2] > 1) check_sound(model, options, findings);
  if (model.third_order.n_blocks() > 0) check_gruneisen(model, options, findings);
  check_vacuum(model.crystal, findings);
}

}  // namespace quasi::thermal
