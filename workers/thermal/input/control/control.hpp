#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "workers/io/settings.hpp"
#include "workers/thermal/input/control/namelist.hpp"
#include "workers/thermal/model/case_options.hpp"
#include "workers/thermal/model/path_options.hpp"
#include "workers/thermal/model/precision.hpp"
#include "workers/thermal/model/sampling_options.hpp"
#include "workers/thermal/model/symmetry.hpp"
#include "workers/thermal/physics/broadening.hpp"
#include "workers/thermal/physics/physical_constants.hpp"
#include "workers/thermal/physics/vectors.hpp"

/// Begin here: workers/thermal/input/control reads the keys of a deck. namelist.hpp parses groups
/// and settings, control_keys.hpp names every key, key_table.hpp stores the values, and
/// control_checks.hpp fills in defaults and checks combinations. Control holds the result.
namespace quasi::thermal {

/// Everything a deck's CONTROL says, typed, with defaults filled in and combinations checked.
/// Reference keys are those of docs/theory/thermal.md 1.1; keys below "Extensions" are this
/// program's own and may stand in any group or be given as settings (`--set key=value`).
struct Control {
  // &allocations
  int n_elements = 0;
  int n_atoms = 0;
  Index3 mesh{0, 0, 0};    ///< ngrid
  int n_orientations = 0;  ///< norientations
  // &crystal
  double lfactor_nm = 1.0;
  Mat3 lattvec{};  ///< row i is a_i / lfactor
  std::vector<std::string> elements;
  std::vector<int> types;          ///< [atom], 1-based
  std::vector<Vec3> positions;     ///< [atom] fractional
  std::vector<double> masses_amu;  ///< [element], when autoisotopes is off
  std::vector<double> g_factors;   ///< [element], when autoisotopes is off
  Mat3 epsilon = kIdentity;
  std::vector<Mat3> born;  ///< [atom][field][displacement]
  bool born_given = false;
  Index3 supercell{0, 0, 0};  ///< scell
  std::vector<Index3> orientations;
  // &parameters
  std::vector<double> temperatures_k;  ///< from T (one or a list) or T_min, T_max, T_step
  double scale_broad = 1.0;
  double radius_min_nm = 5.0, radius_max_nm = 505.0, radius_step_nm = 100.0;
  int max_iterations = 1000;            ///< maxiter
  double convergence_tolerance = 1e-5;  ///< eps
  int n_ticks = 100;
  double omega_max_rad_ps = 1e100;
  std::int64_t samples_3ph = -1;  ///< num_sample_process_3ph; -1: exact
  std::int64_t samples_3ph_phase_space = -1;
  std::int64_t samples_4ph = -1;
  std::int64_t samples_4ph_phase_space = -1;
  // &flags
  bool nonanalytic = true;
  bool converge = true;  ///< convergence
  bool isotopes = true;
  bool auto_isotopes = true;
  bool nanowires = false;
  bool only_harmonic = false;
  bool espresso = false;
  bool tdep = false;
  std::string forces = "files";      ///< or the potential that the constants are computed from
  double cutoff_3rd_angstrom = 0.0;  ///< largest distance in a triple, with `forces`
  double cutoff_4th_angstrom = 0.0;  ///< largest distance in a quartet, with `forces`
  double displacement_angstrom = 5e-4;
  double ewald_parameter = 0.0;  ///< Ewald, of TDEP constants; not used
  bool four_phonon = false;
  bool four_phonon_iteration = false;

  // Extensions.
  bool compat = false;  ///< compat = "fourphonon": constants, σ and windows of FourPhonon
  Broadening broadening = Broadening::kSymmetric;
  double sigma_thz = 0.0;  ///< standard deviation of the fixed width in frequency, as in phono3py
  Solver solver = Solver::kConjugateGradients;
  Precision precision = Precision::kDouble;
  double cut_3ph = 2.0;                 ///< cut3: window |Δω| ≤ cut3·σ
  double cut_4ph = 1.0;                 ///< cut4
  bool window_norm = true;              ///< divide δ by erf(cut)
  double sigma_least_4ph_rad_ps = 0.0;  ///< 4ph tuples whose σ is smaller are left out
  double sigma_floor_4ph_rad_ps = 0.0;  ///< FourPhonon 1e-3: below it σ := 1/√π
  double omega_floor_4ph_rad_ps = 0.0;  ///< FourPhonon 1.25: W := 0 when a partner is slower
  double tie_tolerance_rad_ps = 1e-9;   ///< 4ph windows are at least this; FourPhonon 0
  bool exact_weights = true;            ///< 4ph tuples of coinciding phonons weigh ½ and 1/6
  bool use_symmetry = true;             ///< symmetry
  double symmetry_tolerance = 1e-5;     ///< symprec, nm
  double degeneracy_rad_ps = 1e-4;      ///< bands closer than this are one subspace
  bool average_degenerate = true;       ///< rates averaged over each degenerate subspace
  bool allow_imaginary = false;
  bool allow_inconsistent_position = false;
  bool allow_broken_sum_rule = false;
  bool allow_repeated_blocks = false;
  bool project_sum_rule = false;  ///< sum_rule = project: on third and fourth order
  bool allow_broken_permutation = false;
  bool allow_charge = false;
  bool allow_implausible = false;
  bool allow_few_processes = false;
  DipoleMethod dipole_method = DipoleMethod::kGonzeLee;  ///< nac_method
  bool phonopy_damping = false;                          ///< nac_damping
  bool mean_over_centres = true;         ///< fc3_centres: images of third order of phono3py decks
  bool acoustic_sum_rule = false;        ///< impose it on FORCE_CONSTANTS_2ND too
  double boundary_length_nm = 0.0;       ///< adds |v|/L to the rates; 0: none
  bool coherence = true;                 ///< the Wigner conductivity's part between branches
  bool derivative = false;               ///< of κ by every third-order constant
  bool derivative_fourth_order = false;  ///< of κ by every fourth-order constant too
  std::vector<double> isotope_factors;   ///< sweep: isotope scattering times each of these
  std::vector<double> grain_sizes_nm;    ///< sweep: boundary lengths
  bool convergence_study = false;  ///< --converge: κ on coarser meshes and with smaller widths too
  std::vector<int> study_meshes;   ///< divisions of the first axis; empty: from the deck's own
  std::vector<double> study_scale_broads;  ///< study_scalebroads; empty: from the deck's own
  bool renormalise = false;  ///< phonons are those of each temperature, with the fourth order
  Index3 renormalise_mesh{0, 0, 0};      ///< samples the displacements; default: ngrid
  double renormalise_tolerance = 1e-10;  ///< of the self-consistent constants
  int renormalise_iterations = 400;      ///< at most
  bool renormalise_bubble = false;       ///< adds the static bubble of the third order
  double sheet_thickness_nm = 0.0;       ///< κ of a 2D sheet is quoted for this thickness; 0: bulk
  int sheet_axis = 3;                    ///< lattice vector normal to the sheet, 1–3
  PathOptions path;                      ///< path, path_points
  double eigenvector_limit_mib = 32.0;   ///< result.h5 holds smaller sets of eigenvectors
  std::int64_t seed = 1;                 ///< of every random draw
  double checkpoint_interval_s = 30.0;   ///< between checkpoints of long sums; 0: after every piece
  double checkpoint_limit_mib =
      16384.0;  ///< of the four-phonon collision operator; a larger one is built again
  double device_memory_fraction = 0.0;      ///< of the memory of a device; 0: no budget from it
  int threads = 0;                          ///< OpenMP threads; 0: OMP_NUM_THREADS or the cores
  double memory_budget_mib = 0.0;           ///< for process lists and work arrays; 0: by device
  Sampling sampling = Sampling::kByWeight;  ///< with num_sample_process_* or target_kappa_error
  double target_kappa_error = 0.0;          ///< sampling stops at this relative error of κ; 0: off

  /// The constants are computed from a potential instead of read from files.
  bool computes_constants() const { return forces != "files"; }
  /// Options of find_symmetry.
  SymmetryOptions symmetry_options() const {
    return {mesh, symmetry_tolerance, use_symmetry, where({"symprec"})};
  }
  /// Says which keys of widths the deck gives although its broadening does not use them.
  std::vector<std::string> idle_width_keys() const;
  /// Returns σ of δ_σ = exp(−x²/σ²)/(σ√π), which is √2 times the standard deviation
  /// 2π·sigma_thz.
  double fixed_sigma_rad_ps() const;
  /// Options of solve_harmonic.
  HarmonicOptions harmonic_options() const;
  /// Options of make_three_phonon_problem.
  ThreePhononOptions three_phonon_options() const;
  /// Options of Transport: of κ and the quantities derived from it.
  TransportOptions transport_options() const;
  /// Options of add_scattering.
  RateOptions rate_options() const;
  /// Options of make_problem_4ph and run_four_phonon.
  FourPhononOptions four_phonon_options() const;
  /// Options of the phonons that are renormalised at every temperature.
  RenormalisationOptions renormalisation_options() const {
    return {renormalise, renormalise_mesh, renormalise_tolerance, renormalise_iterations,
            renormalise_bubble};
  }
  /// Options of sheet_factor.
  SheetOptions sheet_options() const { return {sheet_thickness_nm, sheet_axis}; }
  /// Options of check_case and check_broadening.
  CheckOptions check_options() const;
  /// Options of solve_case: those of all steps.
  CaseOptions case_options() const;
  const PhysicalConstants& constants() const { return compat ? kReferenceProgram : kCodata2018; }
  int n_branches() const { return 3 * n_atoms; }
  std::string deck_name;                        ///< "CONTROL", or the file that stands for it
  std::map<std::string, std::string> given_at;  ///< of every key that was given, where it was last
  /// The places where these keys were last given, for messages: "CONTROL line 9, --set T=300". It
  /// is the name of the deck if none of them was given.
  std::string where(const std::vector<std::string>& keys) const;

  /// Three-phonon rates are a sample's.
  bool samples_rates_3ph() const {
    return samples_3ph > 0 || (!four_phonon && target_kappa_error > 0.0);
  }
  /// Share of target_kappa_error that one order may take: errors of both orders add as squares.
  double target_of_one_order() const {
    return samples_rates_3ph() && samples_rates_4ph() ? target_kappa_error / std::sqrt(2.0)
                                                      : target_kappa_error;
  }
  /// Four-phonon rates are a sample's.
  bool samples_rates_4ph() const {
    return samples_4ph > 0 || (four_phonon && target_kappa_error > 0.0);
  }
};

/// Reads DIRECTORY/CONTROL and lays `overrides` on top (any key of any group), in their order.
/// @throws InvalidInput naming line, key, value and remedy: unknown keys with the nearest known
/// one,
///         wrong counts or types, impossible combinations (docs/theory/thermal.md 1.1), `tdep` and
///         `Ewald`.
Control read_control(const std::filesystem::path& directory,
                     const std::vector<NamelistAssignment>& overrides);
Control read_control(const std::filesystem::path& directory, const std::vector<Setting>& settings);

/// Reads a CONTROL from text; `where` names it in messages. With an empty text, everything comes
/// from the overrides.
Control parse_control(const std::string& text, const std::string& where,
                      const std::vector<NamelistAssignment>& overrides);

/// The user's `--set key=value`: namelist syntax, or a list in brackets as TOML writes it.
std::vector<NamelistAssignment> assignments_of(const std::vector<Setting>& settings);

/// Every key a CONTROL may hold, in lower case.
const std::vector<std::string>& control_keys();

}  // namespace quasi::thermal
