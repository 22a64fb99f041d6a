#include "workers/thermal/input/control/control_keys.hpp"

#include <strings.h>

#include "workers/backend/error.hpp"
#include "workers/thermal/input/control/namelist_section.hpp"

namespace quasi::thermal {
namespace {

using Value = NamelistValue;
using Assignment = NamelistAssignment;

constexpr int kMaxAtoms = 1000;  // a primitive cell; the work grows with the cube of it
constexpr int kMaxElements = 118;
constexpr int kMaxOrientations = 1000;
constexpr int kMaxMeshAxis = 1024;
constexpr int kMaxSupercellAxis = 256;

void add_allocations(KeyTable& keys, Control& c) {
  keys.add_extent("nelements", c.n_elements, 1, kMaxElements);
  keys.add_extent("natoms", c.n_atoms, 1, kMaxAtoms);
  keys.add_extent("norientations", c.n_orientations, 0, kMaxOrientations);
  keys.index3("allocations", "ngrid", c.mesh, kMaxMeshAxis);
}

void add_cell(KeyTable& keys, Control& c) {
  keys.positive("crystal", "lfactor", c.lfactor_nm);
  keys.index3("crystal", "scell", c.supercell, kMaxSupercellAxis);
  keys.add("crystal", "lattvec", [&c](const Assignment& a) {
    assign_section(a, {3, 3}, [&](std::size_t i, const Value& v) {
      c.lattvec[i / 3][i % 3] = namelist_real(v, a);
    });
  });
  keys.add("crystal", "elements", [&c](const Assignment& a) {
    assign_section(a, {c.n_elements}, [&](std::size_t i, const Value& v) {
      std::string text = *v.text;
      text.erase(0, text.find_first_not_of(" \t"));
      text.erase(text.find_last_not_of(" \t") + 1);
      if (text.empty() || text.size() > 8) fail(a, "holds an empty or overlong symbol");
      c.elements[i] = text;
    });
  });
}

void add_atoms(KeyTable& keys, Control& c) {
  keys.add("crystal", "types", [&c](const Assignment& a) {
    assign_section(a, {c.n_atoms}, [&](std::size_t i, const Value& v) {
      const long long type = namelist_integer(v, a);
      if (type < 1 || type > c.n_elements)
        fail(a, "of atom " + std::to_string(i + 1) + " must lie between 1 and nelements = " +
                    std::to_string(c.n_elements) + ", got " + std::to_string(type));
      c.types[i] = static_cast<int>(type);
    });
  });
  keys.add("crystal", "positions", [&c](const Assignment& a) {
    assign_section(a, {3, c.n_atoms}, [&](std::size_t i, const Value& v) {
      c.positions[i / 3][i % 3] = namelist_real(v, a);
    });
  });
  keys.add("crystal", "masses", [&c](const Assignment& a) {
    assign_section(a, {c.n_elements}, [&](std::size_t i, const Value& v) {
      c.masses_amu[i] = namelist_real(v, a);
      if (!(c.masses_amu[i] > 0.0))
        fail(a, "must be positive (amu), got " + number_text(c.masses_amu[i]));
    });
  });
  keys.add("crystal", "gfactors", [&c](const Assignment& a) {
    assign_section(a, {c.n_elements}, [&](std::size_t i, const Value& v) {
      c.g_factors[i] = namelist_real(v, a);
      if (!(c.g_factors[i] >= 0.0))
        fail(a, "must not be negative, got " + number_text(c.g_factors[i]));
    });
  });
}

void add_dielectric_response(KeyTable& keys, Control& c) {
  keys.add("crystal", "epsilon", [&c](const Assignment& a) {
    assign_section(a, {3, 3}, [&](std::size_t i, const Value& v) {
      c.epsilon[i % 3][i / 3] = namelist_real(v, a);
    });
  });
  keys.add("crystal", "born", [&c](const Assignment& a) {
    assign_section(a, {3, 3, c.n_atoms}, [&](std::size_t i, const Value& v) {
      c.born[i / 9][i % 3][i / 3 % 3] = namelist_real(v, a);
      c.born_given = true;
    });
  });
}

void add_orientations(KeyTable& keys, Control& c) {
  keys.add("crystal", "orientations", [&c](const Assignment& a) {
    assign_section(a, {3, c.n_orientations}, [&](std::size_t i, const Value& v) {
      const long long value = namelist_integer(v, a);
      if (value < -1000 || value > 1000) fail(a, "must lie between -1000 and 1000");
      c.orientations[i / 3][i % 3] = static_cast<int>(value);
    });
  });
}

void add_temperatures(KeyTable& keys, RawControl& raw) {
  keys.add("parameters", "t", [&raw](const Assignment& a) {
    raw.temperature_range_k.clear();
    raw.temperature_list_k = real_list(a);
    if (raw.temperature_list_k.empty()) fail(a, "has no value");
  });
  for (const char* name : {"t_min", "t_max", "t_step"})
    keys.add("parameters", name, [&raw, name](const Assignment& a) {
      raw.temperature_list_k.clear();
      raw.temperature_range_k[name] = namelist_real(scalar(a), a);
    });
}

void add_parameters(KeyTable& keys, Control& c) {
  keys.positive("parameters", "scalebroad", c.scale_broad);
  keys.positive("parameters", "rmin", c.radius_min_nm);
  keys.positive("parameters", "rmax", c.radius_max_nm);
  keys.positive("parameters", "dr", c.radius_step_nm);
  keys.integer("parameters", "maxiter", c.max_iterations, 1, 1000000);
  keys.positive("parameters", "eps", c.convergence_tolerance);
  keys.integer("parameters", "nticks", c.n_ticks, 2, 1000000);
  keys.positive("parameters", "omega_max", c.omega_max_rad_ps);
  keys.samples("num_sample_process_3ph", c.samples_3ph);
  keys.samples("num_sample_process_3ph_phase_space", c.samples_3ph_phase_space);
  keys.samples("num_sample_process_4ph", c.samples_4ph);
  keys.samples("num_sample_process_4ph_phase_space", c.samples_4ph_phase_space);
  keys.add("parameters", "ewald", [&c](const Assignment& a) {
    c.ewald_parameter = namelist_real(scalar(a), a);  // the dipole sum does not depend on it
  });
}

void add_flags(KeyTable& keys, Control& c) {
  keys.flag("flags", "nonanalytic", c.nonanalytic);
  keys.flag("flags", "convergence", c.converge);
  keys.flag("flags", "isotopes", c.isotopes);
  keys.flag("flags", "autoisotopes", c.auto_isotopes);
  keys.flag("flags", "nanowires", c.nanowires);
  keys.flag("flags", "onlyharmonic", c.only_harmonic);
  keys.flag("flags", "espresso", c.espresso);
  keys.flag("flags", "four_phonon", c.four_phonon);
  keys.flag("flags", "four_phonon_iteration", c.four_phonon_iteration);
  keys.flag("flags", "tdep", c.tdep);
}

void add_methods(KeyTable& keys, RawControl& raw) {
  keys.word("compat", raw.compat, {"none", "fourphonon"});
  keys.word("broadening", raw.broadening,
            {"symmetric", "adaptive-max", "adaptive-rms", "fixed", "tetrahedra"});
  keys.positive("", "sigma_thz", raw.control.sigma_thz);
  keys.word("solver", raw.solver, {"auto", "cg", "gmres", "fixed-point"});
  keys.word("sampling", raw.sampling, {"auto", "uniform", "by-weight"});
  keys.add("", "strategy", [](const Assignment& a) {
    const std::string& text = *scalar(a).text;
    if (strcasecmp(text.c_str(), "factorised") != 0)
      fail(a, "must be factorised, which is how jobs sum processes, got '" + text +
                  "'; bench/published_strategies.sh compares the published strategies");
  });
  keys.word("precision", raw.precision, {"double", "mixed"});
  keys.word("nac_method", raw.nac_method, {"auto", "mixed-space", "gonze-lee", "none"});
  keys.word("nac_damping", raw.nac_damping, {"auto", "phonopy"});
  keys.word("sum_rule", raw.sum_rule, {"check", "project"});
  keys.word("fc3_centres", raw.fc3_centres, {"mean", "first"});
}

void add_forces(KeyTable& keys, Control& c) {
  keys.word("forces", c.forces, {"files", "stillinger-weber"});
  keys.positive("", "cutoff_3rd_angstrom", c.cutoff_3rd_angstrom);
  keys.positive("", "cutoff_4th_angstrom", c.cutoff_4th_angstrom);
  keys.positive("", "displacement_angstrom", c.displacement_angstrom);
}

void add_scattering_rules(KeyTable& keys, Control& c) {
  keys.positive("", "cut3", c.cut_3ph);
  keys.positive("", "cut4", c.cut_4ph);
  keys.flag("", "window_norm", c.window_norm);
  keys.at_least("", "sigma_least_4ph", c.sigma_least_4ph_rad_ps, 0.0);
  keys.at_least("", "sigma_floor_4ph", c.sigma_floor_4ph_rad_ps, 0.0);
  keys.at_least("", "omega_floor_4ph", c.omega_floor_4ph_rad_ps, 0.0);
  keys.at_least("", "tie_tolerance", c.tie_tolerance_rad_ps, 0.0);
  keys.flag("", "exact_weights", c.exact_weights);
}

void add_symmetry_and_checks(KeyTable& keys, Control& c) {
  keys.flag("", "symmetry", c.use_symmetry);
  keys.positive("", "symprec", c.symmetry_tolerance);
  keys.positive("", "degeneracy", c.degeneracy_rad_ps);
  keys.flag("", "average_degenerate", c.average_degenerate);
  keys.flag("", "allow_imaginary", c.allow_imaginary);
  keys.flag("", "allow_inconsistent_position", c.allow_inconsistent_position);
  keys.flag("", "allow_broken_sum_rule", c.allow_broken_sum_rule);
  keys.flag("", "allow_repeated_blocks", c.allow_repeated_blocks);
  keys.flag("", "allow_broken_permutation", c.allow_broken_permutation);
  keys.flag("", "allow_charge", c.allow_charge);
  keys.flag("", "allow_implausible", c.allow_implausible);
  keys.flag("", "allow_few_processes", c.allow_few_processes);
  keys.flag("", "acoustic_sum_rule", c.acoustic_sum_rule);
}

void add_transport(KeyTable& keys, Control& c) {
  keys.at_least("", "boundary_length_nm", c.boundary_length_nm, 0.0);
  keys.flag("", "coherence", c.coherence);
  keys.flag("", "derivative", c.derivative);
  keys.flag("", "derivative_fourth_order", c.derivative_fourth_order);
  keys.list_from_zero("isotope_factors", c.isotope_factors);
  keys.list_above_zero("grain_sizes_nm", c.grain_sizes_nm);
  keys.at_least("", "sheet_thickness_nm", c.sheet_thickness_nm, 0.0);
  keys.integer("", "sheet_axis", c.sheet_axis, 1, 3);
}

/// Reads "G 0 0 0 X 0.5 0.5 0 | K …": a label and three coordinates for each vertex.
void store_path(const Assignment& a, std::vector<PathVertex>& vertices) {
  vertices.clear();
  bool starts = true;
  for (std::size_t at = 0; at < a.values.size();) {
    if (!a.values[at].text) fail(a, "has an empty value");
    const std::string& label = *a.values[at].text;
    if (label == "|") {
      starts = true;
      ++at;
      continue;
    }
    if (label.size() > 16 || at + 3 >= a.values.size())
      fail(a,
           "must list vertices, each a label and three fractional coordinates, and \"|\" where "
           "the line breaks; '" +
               label.substr(0, 16) + "' is followed by " +
               std::to_string(a.values.size() - at - 1) + " values");
    PathVertex vertex{.label = label, .q = {}, .starts = starts};
    for (std::size_t d = 0; d < 3; ++d) vertex.q[d] = namelist_real(a.values[at + 1 + d], a);
    vertices.push_back(std::move(vertex));
    starts = false;
    at += 4;
  }
}

void add_path(KeyTable& keys, Control& c) {
  keys.add("", "path", [&c](const Assignment& a) { store_path(a, c.path.vertices); });
  keys.integer("", "path_points", c.path.points, 2, 10000);
  keys.at_least("", "eigenvector_limit_mib", c.eigenvector_limit_mib, 0.0);
}

void add_convergence_study(KeyTable& keys, Control& c) {
  keys.flag("", "convergence_study", c.convergence_study);
  keys.list_above_zero("study_scalebroads", c.study_scale_broads);
  keys.add("", "study_meshes", [&c](const Assignment& a) {
    c.study_meshes.clear();
    for (const Value& v : a.values) {
      const long long n = namelist_integer(v, a);
      if (n < 2 || n > kMaxMeshAxis)
        fail(a, "must lie between 2 and " + std::to_string(kMaxMeshAxis));
      c.study_meshes.push_back(static_cast<int>(n));
    }
  });
}

void add_renormalisation(KeyTable& keys, Control& c) {
  keys.flag("", "renormalise", c.renormalise);
  keys.index3("", "renormalise_mesh", c.renormalise_mesh, kMaxMeshAxis);
  keys.positive("", "renormalise_tolerance", c.renormalise_tolerance);
  keys.integer("", "renormalise_iterations", c.renormalise_iterations, 1, 1000000);
  keys.flag("", "renormalise_bubble", c.renormalise_bubble);
}

void add_resources(KeyTable& keys, Control& c) {
  keys.add("", "seed", [&c](const Assignment& a) {
    c.seed = namelist_integer(scalar(a), a);
    if (c.seed < 0) fail(a, "must not be negative");
  });
  keys.at_least("", "checkpoint_interval_s", c.checkpoint_interval_s, 0.0);
  keys.at_least("", "checkpoint_limit_mib", c.checkpoint_limit_mib, 0.0);
  keys.at_least("", "memory_budget_mib", c.memory_budget_mib, 0.0);
  keys.add("", "device_memory_fraction", [&c](const Assignment& a) {
    c.device_memory_fraction = scalar_real(a, 0.0);
    if (c.device_memory_fraction > 1.0) fail(a, "must not exceed 1");
  });
  keys.integer("", "threads", c.threads, 0, 4096);
  keys.at_least("", "target_kappa_error", c.target_kappa_error, 0.0);
}

}  // namespace

KeyTable control_key_table(RawControl& raw) {
  KeyTable keys;
  Control& c = raw.control;
  add_allocations(keys, c);
  add_cell(keys, c);
  add_atoms(keys, c);
  add_dielectric_response(keys, c);
  add_orientations(keys, c);
  add_temperatures(keys, raw);
  add_parameters(keys, c);
  add_flags(keys, c);
  add_methods(keys, raw);
  add_forces(keys, c);
  add_scattering_rules(keys, c);
  add_symmetry_and_checks(keys, c);
  add_transport(keys, c);
  add_path(keys, c);
  add_convergence_study(keys, c);
  add_renormalisation(keys, c);
  add_resources(keys, c);
  return keys;
}

void allocate_arrays(Control& c) {
  if (c.n_elements < 1) throw_missing_key(c, "nelements");
  if (c.n_atoms < 1) throw_missing_key(c, "natoms");
  const auto n_elements = static_cast<std::size_t>(c.n_elements);
  const auto n_atoms = static_cast<std::size_t>(c.n_atoms);
  const Vec3 unset{kUnset, kUnset, kUnset};
  c.lattvec = {unset, unset, unset};
  c.elements.assign(n_elements, "");
  c.masses_amu.assign(n_elements, kUnset);
  c.g_factors.assign(n_elements, kUnset);
  c.types.assign(n_atoms, 0);
  c.positions.assign(n_atoms, unset);
  c.born.assign(n_atoms, Mat3{});
  c.orientations.assign(static_cast<std::size_t>(c.n_orientations), {0, 0, 0});
}

void throw_missing_key(const Control& control, const std::string& key) {
  throw InvalidInput(control.deck_name + ": '" + key + "' is required and not set");
}

}  // namespace quasi::thermal
