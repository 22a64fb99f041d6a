#include "workers/thermal/input/control/control.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "workers/backend/error.hpp"
#include "workers/io/input_path.hpp"
#include "workers/thermal/input/control/control_checks.hpp"
#include "workers/thermal/input/control/control_keys.hpp"
#include "workers/thermal/input/control/namelist_section.hpp"

namespace quasi::thermal {

std::string Control::where(const std::vector<std::string>& keys) const {
  std::vector<std::string> places;
  for (const std::string& key : keys)
    if (const auto at = given_at.find(key);
        at != given_at.end() && std::find(places.begin(), places.end(), at->second) == places.end())
      places.push_back(at->second);
  std::string text;
  for (const std::string& place : places) text += (text.empty() ? "" : ", ") + place;
  return places.empty() ? deck_name : text;
}

std::vector<std::string> Control::idle_width_keys() const {
  std::vector<std::string> keys;
  if (broadening == Broadening::kFixed) keys = {"scalebroad"};
  if (broadening == Broadening::kTetrahedra) keys = {"scalebroad", "cut3", "window_norm"};
  std::vector<std::string> said;
  for (const std::string& key : keys)
    if (given_at.count(key) > 0)
      said.push_back(where({key}) + ": '" + key + "' has no effect with broadening = " +
                     (broadening == Broadening::kFixed ? "fixed" : "tetrahedra"));
  return said;
}

double Control::fixed_sigma_rad_ps() const { return std::sqrt(2.0) * 2.0 * units::kPi * sigma_thz; }

HarmonicOptions Control::harmonic_options() const {
  return {.constants = constants(),
          .compat = compat,
          .nonanalytic = nonanalytic,
          .ewald = espresso,
          .dipole_method = dipole_method,
          .whole_dipoles = tdep,
          .phonopy_damping = phonopy_damping,
          .symmetry_tolerance_nm = symmetry_tolerance,
          .degeneracy_rad_ps = degeneracy_rad_ps,
          .average_degenerate = average_degenerate,
          .broadening = broadening,
          .fixed_sigma_rad_ps = fixed_sigma_rad_ps(),
          .allow_imaginary = allow_imaginary,
          .allow_inconsistent_position = allow_inconsistent_position,
          .positions_location = where({"positions"}),
          .epsilon_location = where({"epsilon"})};
}

ThreePhononOptions Control::three_phonon_options() const {
  return {.constants = constants(),
          .broadening = broadening,
          .scale_broad = broadening == Broadening::kFixed ? fixed_sigma_rad_ps() : scale_broad,
          .cut = cut_3ph,
          .window_norm = window_norm,
          .omega_max_rad_ps = omega_max_rad_ps,
          .precision = precision,
          .memory_budget_bytes = static_cast<std::int64_t>(memory_budget_mib * 1048576.0)};
}

TransportOptions Control::transport_options() const {
  return {.harmonic = harmonic_options(),
          .temperatures_k = temperatures_k,
          .omega_max_rad_ps = omega_max_rad_ps,
          .n_ticks = n_ticks,
          .iteration = {converge, solver, max_iterations, convergence_tolerance},
          .wires = {nanowires, orientations, radius_min_nm, radius_max_nm, radius_step_nm},
          .sweep = {isotope_factors, grain_sizes_nm},
          .coherence = coherence};
}

RateOptions Control::rate_options() const {
  return {.isotopes = isotopes,
          .boundary_length_nm = boundary_length_nm,
          .three_phonon_sampling = {.enabled = samples_rates_3ph(),
                                    .estimator = sampling,
                                    .draws = samples_3ph,
                                    .phase_space_draws = samples_3ph_phase_space,
                                    .target_kappa_error = target_kappa_error,
                                    .target_of_order = target_of_one_order(),
                                    .seed = static_cast<std::uint64_t>(seed)},
          .checkpoint_interval_s = checkpoint_interval_s};
}

FourPhononOptions Control::four_phonon_options() const {
  return {.constants = constants(),
          .compat = compat,
          .broadening = broadening,
          .scale_broad = scale_broad,
          .cut = cut_4ph,
          .window_norm = window_norm,
          .sigma_least_rad_ps = sigma_least_4ph_rad_ps,
          .sigma_floor_rad_ps = sigma_floor_4ph_rad_ps,
          .omega_floor_rad_ps = omega_floor_4ph_rad_ps,
          .tie_tolerance_rad_ps = tie_tolerance_rad_ps,
          .exact_weights = exact_weights,
          .omega_max_rad_ps = omega_max_rad_ps,
          .average_degenerate = average_degenerate,
          .use_symmetry = use_symmetry,
          .symmetry_tolerance_nm = symmetry_tolerance,
          .precision = precision,
          .temperatures_k = temperatures_k,
          .sampling = {.enabled = samples_rates_4ph(),
                       .estimator = sampling,
                       .draws = samples_4ph,
                       .phase_space_draws = samples_4ph_phase_space,
                       .target_kappa_error = target_kappa_error,
                       .target_of_order = target_of_one_order(),
                       .seed = static_cast<std::uint64_t>(seed)},
          .iteration = four_phonon_iteration,
          .memory_budget_bytes = static_cast<std::int64_t>(memory_budget_mib * 1048576.0),
          .checkpoint_interval_s = checkpoint_interval_s};
}

CheckOptions Control::check_options() const {
  return {.compat = compat,
          .allow_inconsistent_position = allow_inconsistent_position,
          .allow_broken_sum_rule = allow_broken_sum_rule,
          .allow_broken_permutation = allow_broken_permutation,
          .allow_charge = allow_charge,
          .allow_implausible = allow_implausible,
          .allow_few_processes = allow_few_processes,
          .bulk = sheet_thickness_nm == 0.0};
}

CaseOptions Control::case_options() const {
  return {.only_harmonic = only_harmonic,
          .symmetry = symmetry_options(),
          .transport = transport_options(),
          .rates = rate_options(),
          .three_phonon = three_phonon_options(),
          .four_phonon = four_phonon_options(),
          .study = {convergence_study, study_meshes, study_scale_broads},
          .renormalisation = renormalisation_options(),
          .checks = check_options(),
          .derivative = derivative,
          .derivative_fourth_order = derivative_fourth_order,
          .checkpoint_interval_s = checkpoint_interval_s,
          .collision_checkpoint_limit_bytes = checkpoint_limit_mib * 1048576.0};
}

Control parse_control(const std::string& text, const std::string& where,
                      const std::vector<NamelistAssignment>& overrides) {
  const std::vector<NamelistAssignment> deck = parse_namelists(text, where);
  for (const NamelistAssignment& a : deck)
    if (a.group != "allocations" && a.group != "crystal" && a.group != "parameters" &&
        a.group != "flags")
      throw InvalidInput(
          unknown_key_message(std::string("&").append(a.group), a.where,
                              {"&allocations", "&crystal", "&parameters", "&flags"}));

  RawControl raw;
  raw.control.deck_name = where;
  const KeyTable keys = control_key_table(raw);
  keys.read_extents(deck);
  keys.read_extents(overrides);
  allocate_arrays(raw.control);
  keys.store(deck, raw.control.given_at);
  keys.store(overrides, raw.control.given_at);
  return checked_control(std::move(raw));
}

std::vector<NamelistAssignment> assignments_of(const std::vector<Setting>& settings) {
  std::vector<NamelistAssignment> assignments;
  for (const Setting& setting : settings) {
    std::string value = setting.value;
    if (value.starts_with('[')) std::erase_if(value, [](char c) { return c == '[' || c == ']'; });
    assignments.push_back(parse_namelist_setting(setting.key, value));
  }
  return assignments;
}

const std::vector<std::string>& control_keys() {
  static const std::vector<std::string> keys = [] {
    RawControl unused;
    return control_key_table(unused).names();
  }();
  return keys;
}

Control read_control(const std::filesystem::path& directory, const std::vector<Setting>& settings) {
  return read_control(directory, assignments_of(settings));
}

Control read_control(const std::filesystem::path& directory,
                     const std::vector<NamelistAssignment>& overrides) {
  const std::filesystem::path file = directory / "CONTROL";
  std::error_code failure;
  if (!std::filesystem::is_directory(directory, failure))
    throw InvalidInput("deck '" + directory.string() + "' is not a directory");
  std::ifstream in(input_file(file), std::ios::binary);
  if (!in)
    throw InvalidInput("'" + file.string() +
                       "' cannot be read; a thermal deck needs a CONTROL file");
  constexpr std::size_t kMaxBytes = 16 << 20;
  std::string text;
  char buffer[1 << 16];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxBytes)
      throw InvalidInput("'" + file.string() + "' is larger than 16 MiB; is it a CONTROL file?");
  }
  return parse_control(text, "CONTROL", overrides);
}

}  // namespace quasi::thermal
