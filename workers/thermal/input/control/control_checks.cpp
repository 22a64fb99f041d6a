#include "workers/thermal/input/control/control_checks.hpp"

#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/thermal/input/control/namelist_section.hpp"

namespace quasi::thermal {
namespace {

// Tungsten, the most strongly bound element, is bound by 8.9 eV an atom; k_B T of this limit is
// 8.6 eV.
constexpr double kMaxTemperature_k = 1e5;
constexpr double kMaxModes = 2e7;     // their eigenvectors alone are 2 GB for six branches
constexpr double kMaxPosition = 100;  // fractional coordinates; an image farther away is a mistake
constexpr double kMaxSymmetryTolerance_nm = 0.1;

/// Throws the error of keys that are wrong, or wrong together.
[[noreturn]] void refuse(const Control& c, const std::vector<std::string>& keys,
                         const std::string& reason) {
  throw InvalidInput(c.where(keys) + ": " + reason);
}

/// T_min, T_min + T_step, … ≤ T_max. T_max is the last point where the last step overshoots it by
/// more than 1 K (docs/theory/thermal.md 1.1).
std::vector<double> expand_range(const Control& c, const std::map<std::string, double>& range) {
  for (const char* name : {"t_min", "t_max", "t_step"})
    if (range.count(name) == 0) throw_missing_key(c, name);
  const double low = range.at("t_min");
  const double high = range.at("t_max");
  const double step = range.at("t_step");
  if (!(step > 0.0)) refuse(c, {"t_step"}, "'t_step' must be positive, got " + number_text(step));
  if (high < low)
    refuse(c, {"t_max", "t_min"},
           "'t_max' = " + number_text(high) + " is below 't_min' = " + number_text(low));
  if ((high - low) / step > static_cast<double>(kMaxTemperatures))
    refuse(c, {"t_step"},
           "'t_step' = " + number_text(step) + " gives more than " +
               std::to_string(kMaxTemperatures) + " temperatures");
  std::vector<double> t;
  const auto n = static_cast<int>(std::floor((high - low) / step + 1e-9));
  for (int i = 0; i <= n; ++i) t.push_back(low + i * step);
  if (t.back() + step - high > 1.0 && high - t.back() > 1e-9) t.push_back(high);
  return t;
}

void set_temperatures(RawControl& raw) {
  Control& c = raw.control;
  const bool listed = !raw.temperature_list_k.empty();
  if (!listed && raw.temperature_range_k.empty()) throw_missing_key(c, "T");
  c.temperatures_k = listed ? raw.temperature_list_k : expand_range(c, raw.temperature_range_k);
  if (c.temperatures_k.size() > kMaxTemperatures)
    refuse(c, {"t"}, "'T' lists more than " + std::to_string(kMaxTemperatures) + " temperatures");
  const std::vector<std::string> keys =
      listed ? std::vector<std::string>{"t"} : std::vector<std::string>{"t_min", "t_max", "t_step"};
  for (const double value : c.temperatures_k)
    if (value <= 0.0)
      refuse(c, keys,
             "temperatures ('T') must lie above 0, got " + number_text(value) +
                 " K; without thermal phonons κ is not defined, so give a temperature above 0");
  for (const double value : c.temperatures_k)
    if (!(value > 0.0 && value <= kMaxTemperature_k))
      refuse(c, keys,
             "temperatures ('T') must lie above 0 and at most at " +
                 number_text(kMaxTemperature_k) +
                 " K, where k_B T is the energy that binds the strongest crystals, got " +
                 number_text(value) + " K; give kelvin below the crystal's melting point");
}

void check_mesh_and_cell(const Control& c) {
  if (c.mesh[0] < 1 || c.mesh[1] < 1 || c.mesh[2] < 1) throw_missing_key(c, "ngrid");
  if (c.supercell[0] < 1 || c.supercell[1] < 1 || c.supercell[2] < 1) throw_missing_key(c, "scell");
  const double modes = 1.0 * c.mesh[0] * c.mesh[1] * c.mesh[2] * c.n_branches();
  if (modes > kMaxModes)
    refuse(c, {"ngrid"},
           "'ngrid' gives " + number_text(modes) + " modes, more than the limit of " +
               number_text(kMaxModes) + "; use a coarser mesh");
  for (int i = 0; i < 3; ++i)
    for (int d = 0; d < 3; ++d)
      if (std::isnan(c.lattvec[i][d]))
        throw_missing_key(c,
                          "lattvec(" + std::to_string(d + 1) + "," + std::to_string(i + 1) + ")");
  if (c.symmetry_tolerance > kMaxSymmetryTolerance_nm)
    refuse(c, {"symprec"},
           "'symprec' = " + number_text(c.symmetry_tolerance) + " nm is above the limit of " +
               number_text(kMaxSymmetryTolerance_nm));
}

void check_atoms(const Control& c) {
  for (int atom = 0; atom < c.n_atoms; ++atom) {
    const std::string number = std::to_string(atom + 1);
    if (c.types[atom] == 0) throw_missing_key(c, "types(" + number + ")");
    for (int d = 0; d < 3; ++d)
      if (std::isnan(c.positions[atom][d]))
        throw_missing_key(c, "positions(" + std::to_string(d + 1) + "," + number + ")");
    for (const double x : c.positions[atom])
      if (std::fabs(x) > kMaxPosition)
        refuse(c, {"positions"},
               "'positions' of atom " + number + " holds " + number_text(x) +
                   ", beyond the limit of " + number_text(kMaxPosition) + " cells");
  }
}

void check_elements(Control& c) {
  for (int e = 0; e < c.n_elements; ++e) {
    const std::string index = std::string("(").append(std::to_string(e + 1)).append(")");
    if (c.elements[e].empty()) throw_missing_key(c, "elements" + index);
    if (c.auto_isotopes) continue;
    const auto needs = [&](const std::string& key) {
      refuse(c, {"autoisotopes"},
             "'" + key + index +
                 "' is required because autoisotopes = .false.; give it, or set autoisotopes = "
                 ".true. for the natural composition");
    };
    if (std::isnan(c.masses_amu[e])) needs("masses");
    if (!std::isnan(c.g_factors[e])) continue;
    if (c.isotopes) needs("gfactors");
    c.g_factors[e] = 0.0;
  }
}

/// Sets the defaults of compat = "fourphonon", which are the fixed choices of FourPhonon. The
/// deck's own keys override each of them.
void set_compatible_defaults(RawControl& raw) {
  Control& c = raw.control;
  const auto given = [&c](const char* key) { return c.given_at.count(key) > 0; };
  if (!given("broadening")) raw.broadening = "adaptive-max";
  if (!given("window_norm")) c.window_norm = false;
  if (!given("sigma_floor_4ph")) c.sigma_floor_4ph_rad_ps = 1e-3;
  if (!given("omega_floor_4ph")) c.omega_floor_4ph_rad_ps = 1.25;
  if (!given("tie_tolerance")) c.tie_tolerance_rad_ps = 0.0;
  if (!given("exact_weights")) c.exact_weights = false;
  if (!given("average_degenerate")) c.average_degenerate = false;
  if (!given("coherence")) c.coherence = false;
  if (!given("fc3_centres")) raw.fc3_centres = "first";
}

/// Turns the words of the deck into enumerations.
void set_methods(RawControl& raw) {
  Control& c = raw.control;
  c.compat = raw.compat == "fourphonon";
  if (c.compat) set_compatible_defaults(raw);
  const std::map<std::string, Broadening> broadenings{{"symmetric", Broadening::kSymmetric},
                                                      {"adaptive-max", Broadening::kAdaptiveMax},
                                                      {"adaptive-rms", Broadening::kAdaptiveRms},
                                                      {"fixed", Broadening::kFixed},
                                                      {"tetrahedra", Broadening::kTetrahedra}};
  c.broadening = broadenings.at(raw.broadening);
  // phono3py's Gaussian has no window. The part beyond 4σ is 1.5e-8.
  if (c.broadening == Broadening::kFixed && c.given_at.count("cut3") == 0) c.cut_3ph = 4.0;
  const bool symmetric = has_symmetric_width(c.broadening);
  const std::map<std::string, Solver> solvers{
      {"auto", symmetric ? Solver::kConjugateGradients : Solver::kGmres},
      {"cg", Solver::kConjugateGradients},
      {"gmres", Solver::kGmres},
      {"fixed-point", Solver::kFixedPoint}};
  c.solver = solvers.at(raw.solver);
  if (c.solver == Solver::kConjugateGradients && !symmetric)
    refuse(
        c, {"solver", "broadening", "compat"},
        "solver = cg needs the symmetric collision operator, and broadening = " + raw.broadening +
            " does not give one; use broadening = symmetric, or solver = gmres or fixed-point");
  const std::map<std::string, Sampling> samplings{
      {"auto", c.compat ? Sampling::kUniform : Sampling::kByWeight},
      {"uniform", Sampling::kUniform},
      {"by-weight", Sampling::kByWeight}};
  c.sampling = samplings.at(raw.sampling);
  c.precision = raw.precision == "mixed" ? Precision::kMixed : Precision::kDouble;
  c.project_sum_rule = raw.sum_rule == "project";
  c.mean_over_centres = raw.fc3_centres == "mean";
}

/// Sets the treatment of dipoles. espresso.ifc2 holds constants without dipoles, whose Ewald sum is
/// always added.
void set_dipoles(RawControl& raw) {
  Control& c = raw.control;
  if (raw.nac_method == "none") c.nonanalytic = false;
  if (c.tdep && c.espresso)
    refuse(c, {"tdep", "espresso"},
           "'tdep' and 'espresso' both name the file of the second order; set one of them");
  if (c.ewald_parameter > 0.0 && !c.tdep)
    refuse(c, {"ewald"}, "'ewald' belongs to second-order constants of TDEP; set tdep = .true.");
  const bool chosen = raw.nac_method == "mixed-space" || raw.nac_method == "gonze-lee";
  if (chosen && c.espresso)
    refuse(c, {"nac_method", "espresso"},
           "'nac_method' = " + raw.nac_method +
               " is for constants of a supercell, and espresso.ifc2 holds constants without "
               "dipoles; use auto or none");
  c.dipole_method = raw.nac_method == "mixed-space" || (!chosen && c.compat)
                        ? DipoleMethod::kMixedSpace
                        : DipoleMethod::kGonzeLee;
  c.phonopy_damping = raw.nac_damping == "phonopy";
}

/// Checks the keys of constants that are computed from a potential.
void check_forces(const Control& c) {
  if (!c.computes_constants()) {
    for (const char* key : {"cutoff_3rd_angstrom", "cutoff_4th_angstrom", "displacement_angstrom"})
      if (c.given_at.contains(key))
        refuse(c, {key},
               "'" + std::string(key) +
                   "' belongs to constants computed from a potential; remove it, or set forces = "
                   "stillinger-weber");
    return;
  }
  if (c.espresso || c.tdep)
    refuse(c, {"forces", "espresso", "tdep"},
           "'forces' = " + c.forces +
               " computes the constants that 'espresso' and 'tdep' read from files; set one of "
               "them");
  constexpr double kMaxDisplacement_angstrom = 0.5;
  if (c.displacement_angstrom > kMaxDisplacement_angstrom)
    refuse(c, {"displacement_angstrom"},
           "'displacement_angstrom' = " + number_text(c.displacement_angstrom) +
               " is above the limit of 0.5; take a length below 0.05");
  const bool fourth = c.renormalise || (c.four_phonon && !c.only_harmonic);
  if ((fourth || !c.only_harmonic) && c.cutoff_3rd_angstrom == 0.0)
    refuse(c, {"forces"},
           "'forces' = " + c.forces +
               " needs 'cutoff_3rd_angstrom', the largest distance of two atoms of a triple in Å, "
               "or 'onlyharmonic' = .true.");
  if (fourth && c.cutoff_4th_angstrom == 0.0)
    refuse(c, {"forces", "four_phonon", "renormalise"},
           "'forces' = " + c.forces +
               " needs 'cutoff_4th_angstrom', the largest distance of two atoms of a quartet in Å");
}

void check_sampling(const Control& c) {
  if (c.samples_rates_3ph() && c.converge)
    refuse(c, {"num_sample_process_3ph", "target_kappa_error", "convergence"},
           "'num_sample_process_3ph' (or 'target_kappa_error' without 'four_phonon') samples "
           "the relaxation-time "
           "rates, which cannot be iterated; with it set 'convergence' = .false.");
  if (c.samples_rates_3ph() && c.precision == Precision::kMixed)
    refuse(c, {"precision", "num_sample_process_3ph", "target_kappa_error"},
           "'precision' = mixed is an option of exact sums; leave it at double where three-phonon "
           "rates are sampled");
  if (c.four_phonon_iteration && !(c.four_phonon && c.converge))
    refuse(c, {"four_phonon_iteration", "four_phonon", "convergence"},
           "'four_phonon_iteration' needs 'four_phonon' = .true. and 'convergence' = .true.");
  if (c.samples_rates_4ph() && c.four_phonon_iteration)
    refuse(c, {"num_sample_process_4ph", "target_kappa_error", "four_phonon_iteration"},
           "'num_sample_process_4ph' (or 'target_kappa_error') and 'four_phonon_iteration' "
           "exclude each other: "
           "sampled rates cannot be iterated");
  if (!c.four_phonon && (c.samples_4ph > 0 || c.samples_4ph_phase_space > 0))
    refuse(c, {"num_sample_process_4ph", "num_sample_process_4ph_phase_space", "four_phonon"},
           "'num_sample_process_4ph' and 'num_sample_process_4ph_phase_space' need "
           "'four_phonon' = .true.");
}

void check_transport(const Control& c) {
  if (c.nanowires && c.n_orientations < 1)
    refuse(c, {"nanowires", "norientations"},
           "'nanowires' needs 'norientations' of at least 1 and 'orientations'");
  if (c.nanowires)
    for (const Index3& axis : c.orientations)
      if (axis == Index3{0, 0, 0})
        refuse(c, {"orientations"}, "'orientations' has an axis that is not set or zero");
  if (c.convergence_study && c.only_harmonic)
    refuse(c, {"convergence_study", "onlyharmonic"},
           "'convergence_study' studies κ, which 'onlyharmonic' = .true. leaves out");
  if (c.nanowires && c.boundary_length_nm > 0.0)
    refuse(c, {"nanowires", "boundary_length_nm"},
           "'nanowires' and 'boundary_length_nm' both describe the walls; set one of them");
  if (!c.isotope_factors.empty() && !c.isotopes)
    refuse(c, {"isotope_factors", "isotopes"},
           "'isotope_factors' scales isotope scattering and needs 'isotopes' = .true.");
  if (!c.grain_sizes_nm.empty() && c.boundary_length_nm > 0.0)
    refuse(c, {"grain_sizes_nm", "boundary_length_nm"},
           "'grain_sizes_nm' and 'boundary_length_nm' both describe the boundary; set one of them");
  for (std::size_t i = 0; i < c.path.vertices.size(); ++i)
    if (c.path.vertices[i].starts &&
        (i + 1 == c.path.vertices.size() || c.path.vertices[i + 1].starts))
      refuse(c, {"path"},
             "'path' has the vertex '" + c.path.vertices[i].label +
                 "' alone; a line needs at least two vertices");
  if (c.radius_max_nm < c.radius_min_nm) refuse(c, {"rmax", "rmin"}, "'rmax' is below 'rmin'");
}

/// Refuses keys that do not go with a fixed width or with tetrahedra.
void check_widths(const Control& c) {
  const bool fixed = c.broadening == Broadening::kFixed;
  if (fixed != (c.sigma_thz > 0.0))
    refuse(c, {"broadening", "sigma_thz"},
           fixed ? "broadening = fixed needs 'sigma_thz', the standard deviation in THz"
                 : "'sigma_thz' belongs to broadening = fixed; set it, or remove sigma_thz");
  if (fixed && c.convergence_study)
    refuse(c, {"broadening", "convergence_study"},
           "a convergence study varies 'scalebroad', which broadening = fixed does not have; use "
           "broadening = symmetric");
  const bool tetrahedra = c.broadening == Broadening::kTetrahedra;
  if ((fixed || tetrahedra) && c.four_phonon)
    refuse(c, {"broadening", "four_phonon"},
           "broadening = fixed and broadening = tetrahedra are for three phonons alone; set "
           "four_phonon = .false., or broadening = symmetric");
  if (tetrahedra && c.convergence_study)
    refuse(c, {"broadening", "convergence_study"},
           "a convergence study varies the width, which broadening = tetrahedra does not have; use "
           "broadening = symmetric");
}

/// Refuses a derivative of κ where the sums over processes are not those of its equations.
void check_derivative(const Control& c) {
  if (c.derivative_fourth_order && !(c.derivative && c.four_phonon))
    refuse(c, {"derivative_fourth_order", "derivative", "four_phonon"},
           "'derivative_fourth_order' = .true. needs derivative = .true. and four_phonon = .true.");
  if (c.derivative_fourth_order && c.samples_rates_4ph())
    refuse(c, {"derivative_fourth_order", "num_sample_process_4ph", "target_kappa_error"},
           "'derivative_fourth_order' = .true. needs exact four-phonon rates, and these are drawn; "
           "remove num_sample_process_4ph and target_kappa_error");
  if (!c.derivative) return;
  if (c.only_harmonic)
    refuse(c, {"derivative", "onlyharmonic"},
           "'derivative' is that of κ, which 'onlyharmonic' = .true. leaves out");
  if (c.samples_rates_3ph())
    refuse(c, {"derivative", "num_sample_process_3ph", "target_kappa_error"},
           "'derivative' = .true. needs exact three-phonon rates, and these are drawn; remove "
           "num_sample_process_3ph and target_kappa_error");
  if (c.four_phonon_iteration)
    refuse(c, {"derivative", "four_phonon_iteration"},
           "'derivative' = .true. and 'four_phonon_iteration' = .true. exclude each other: the "
           "derivative takes four phonons in relaxation-time approximation; set one of them");
  if (c.converge && (c.compat || !has_symmetric_width(c.broadening)))
    refuse(c, {"derivative", "convergence", "broadening", "compat"},
           "'derivative' of the iterated κ needs a symmetric operator: set broadening = symmetric "
           "and compat = none, or convergence = .false. for the relaxation-time approximation");
}

/// Checks the keys of renormalised phonons, which need all options but those of one set of modes.
void check_renormalisation(Control& c) {
  if (c.renormalise_mesh == Index3{0, 0, 0}) c.renormalise_mesh = c.mesh;
  if (c.renormalise_bubble && !c.renormalise)
    refuse(c, {"renormalise_bubble", "renormalise"},
           "'renormalise_bubble' = .true. adds to renormalised phonons; set renormalise = .true.");
  if (!c.renormalise) return;
  if (c.renormalise_bubble && c.only_harmonic)
    refuse(
        c, {"renormalise_bubble", "onlyharmonic"},
        "'renormalise_bubble' = .true. needs the third order, which 'onlyharmonic' = .true. does "
        "not read; remove one of them");
  if (c.compat)
    refuse(c, {"renormalise", "compat"},
           "'renormalise' = .true. and 'compat' = fourphonon exclude each other: FourPhonon has no "
           "renormalised phonons; remove one of them");
  if (c.convergence_study)
    refuse(
        c, {"renormalise", "convergence_study"},
        "'renormalise' = .true. and 'convergence_study' (--converge) exclude each other; run one "
        "job for each mesh");
}

}  // namespace

Control checked_control(RawControl raw) {
  set_temperatures(raw);
  check_mesh_and_cell(raw.control);
  check_atoms(raw.control);
  check_elements(raw.control);
  set_methods(raw);
  set_dipoles(raw);
  check_forces(raw.control);
  check_sampling(raw.control);
  check_transport(raw.control);
  check_widths(raw.control);
  check_derivative(raw.control);
  check_renormalisation(raw.control);
  return std::move(raw.control);
}

}  // namespace quasi::thermal
