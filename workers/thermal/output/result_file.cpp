#include "workers/thermal/output/result_file.hpp"

#include <cmath>

#include "workers/io/dataset_descriptions.hpp"
#include "workers/thermal/output/result_4ph.hpp"
#include "workers/thermal/output/result_derived.hpp"
#include "workers/thermal/output/temperature_series.hpp"
#include "workers/thermal/output/tensors.hpp"
#include "workers/thermal/solver/transport/derived.hpp"
#include "workers/thermal/solver/transport/subspace_conductivity.hpp"

namespace quasi::thermal {

std::vector<double> flat(const std::vector<Mat3>& tensors, double factor) {
  std::vector<double> values;
  values.reserve(tensors.size() * 9);
  for (const Mat3& tensor : tensors)
    for (const Vec3& row : tensor)
      for (const double x : row) values.push_back(factor * x);
  return values;
}

nlohmann::json json_of(const Mat3& tensor, double factor) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Vec3& row : tensor)
    rows.push_back({factor * row[0], factor * row[1], factor * row[2]});
  return rows;
}

namespace {

/// Writes reduced coordinates of all points of the mesh and of the irreducible ones, and the names
/// of atoms such as Si1.
void write_coordinates(const Deck& deck, H5Writer& out) {
  const QMesh& mesh = deck.symmetry.mesh;
  std::vector<double> all, irreducible;
  std::vector<std::int64_t> numbers;
  for (std::int64_t point = 0; point < mesh.size(); ++point) {
    int c[3];
    mesh.coordinates(point, c);
    for (int d = 0; d < 3; ++d) all.push_back(static_cast<double>(c[d]) / mesh.n[d]);
    numbers.push_back(point);
  }
  for (const std::int32_t point : deck.symmetry.irreducible)
    irreducible.insert(irreducible.end(), all.begin() + 3 * point, all.begin() + 3 * point + 3);
  out.write("/mesh/point", numbers, {mesh.size()}, "1");
  out.write("/mesh/qpoint", all, {mesh.size(), 3}, "1");
  out.write("/mesh/irreducible_qpoint", irreducible, {deck.symmetry.n_irreducible(), 3}, "1");
  const Crystal& crystal = deck.crystal;
  const Mat3 to_cartesian = transpose(crystal.reciprocal_per_nm());
  std::vector<double> cartesian;
  for (std::size_t at = 0; at < all.size(); at += 3) {
    const Vec3 q = to_cartesian * Vec3{all[at], all[at + 1], all[at + 2]};
    cartesian.insert(cartesian.end(), q.begin(), q.end());
  }
  out.write("/mesh/q_cartesian_per_nm", cartesian, {mesh.size(), 3}, "1/nm");
  std::vector<std::string> atoms;
  for (std::size_t atom = 0; atom < crystal.position.size(); ++atom) {
    const auto type = static_cast<std::size_t>(crystal.type[atom]);
    atoms.push_back((type < crystal.element.size() ? crystal.element[type] : "atom") +
                    std::to_string(atom + 1));
  }
  write_labels("/crystal/atom", atoms, &out);
}

}  // namespace

void write_inputs(const Deck& deck, H5Writer& out) {
  const Control& control = deck.control;
  const Crystal& crystal = deck.crystal;
  const std::int64_t n_atoms = crystal.n_atoms();
  out.write_text("/provenance/program", "quasi " QUASI_VERSION);
  out.write_text("/provenance/kind", "thermal");
  out.write_text("/provenance/deck_sha256", deck.digest_sha256);
  out.write_text("/provenance/compat", control.compat ? "fourphonon" : "none");
  out.write("/crystal/lattice", flat({crystal.lattice_nm}, 1.0), {3, 3}, "nm");
  std::vector<double> positions;
  for (const Vec3& p : crystal.position) positions.insert(positions.end(), p.begin(), p.end());
  out.write("/crystal/position", positions, {n_atoms, 3}, "1");
  out.write("/crystal/mass", crystal.mass_amu, {n_atoms}, "amu");
  out.write("/crystal/g_factor", crystal.g_factor, {n_atoms}, "1");
  out.write_text("/crystal/space_group", deck.symmetry.space_group);
  const std::vector<std::int64_t> mesh(control.mesh.begin(), control.mesh.end());
  out.write("/mesh/points_per_axis", mesh, {3}, "1");
  out.write("/mesh/irreducible", deck.symmetry.irreducible, {deck.symmetry.n_irreducible()}, "1");
  out.write("/mesh/multiplicity", deck.symmetry.multiplicity, {deck.symmetry.n_irreducible()}, "1");
  out.write("/mesh/star_of", deck.symmetry.star_of, {deck.symmetry.mesh.size()}, "1");
  write_coordinates(deck, out);
  out.write_scalar("/settings/scale_broad", control.scale_broad, "1");
  out.write_scalar("/settings/cut_3ph", control.cut_3ph, "1");
}

namespace {

void write_modes(const ConductivityRun& run, const Transport& transport, H5Writer& out) {
  const Modes& modes = run.modes;
  const std::int64_t nb = modes.n_branches;
  out.write("/modes/omega", modes.omega_rad_ps, {modes.n_q, nb}, "rad/ps");
  out.write("/modes/velocity", modes.velocity_km_s, {modes.n_q, nb, 3}, "km/s");
  out.write("/modes/subspace", modes.subspace, {modes.n_q, nb}, "1");
  const std::vector<Mat3> trace = velocity_matrix_trace(transport.symmetry, modes);
  if (!trace.empty())
    out.write("/modes/velocity_matrix_trace", flat(trace, 1.0),
              {transport.symmetry.n_irreducible(), nb, 3, 3}, "km^2/s^2");
  const DensityOfStates dos = density_of_states(transport);
  const auto n_ticks = static_cast<std::int64_t>(dos.omega_rad_ps.size());
  out.write("/density_of_states/omega", dos.omega_rad_ps, {n_ticks}, "rad/ps");
  out.write("/density_of_states/total", dos.total_ps, {n_ticks}, "ps");
  out.write("/density_of_states/by_atom", dos.by_atom_ps, {n_ticks, transport.crystal.n_atoms()},
            "ps");
}

/// Writes the eigenvectors, unless they are larger than `eigenvector_limit_mib`.
void write_eigenvectors(const Modes& modes, double limit_mib, H5Writer& out) {
  const std::int64_t nb = modes.n_branches;
  const double mib = 16.0 * static_cast<double>(modes.eigenvector.size()) / 1048576.0;
  if (mib > limit_mib) return;
  out.write("/modes/eigenvector", modes.eigenvector, {modes.n_q, nb, nb}, "1");
  out.attribute("/modes/eigenvector", "phase", "lattice vectors");
  out.attribute("/modes/eigenvector", "normalisation", "unit");
}

void write_rates(const Deck& deck, const ConductivityRun& run, H5Writer& out) {
  const std::int64_t nb = run.modes.n_branches;
  const std::int64_t n_irr = deck.symmetry.n_irreducible();
  if (!run.isotope_per_ps.empty())
    out.write("/rates/isotope", run.isotope_per_ps, {n_irr, nb}, "1/ps");
  if (!run.boundary_per_ps.empty())
    out.write("/rates/boundary", run.boundary_per_ps, {n_irr, nb}, "1/ps");
  const ThreePhononRates& r = run.three_phonon;
  if (r.n_temperatures == 0) return;
  const std::int64_t n_t = r.n_temperatures;
  out.write("/rates/3ph_absorption", r.absorption_per_ps, {n_t, n_irr, nb}, "1/ps");
  out.write("/rates/3ph_emission", r.emission_per_ps, {n_t, n_irr, nb}, "1/ps");
  if (!r.absorption_error_per_ps.empty()) {
    out.write("/rates/3ph_absorption_error", r.absorption_error_per_ps, {n_t, n_irr, nb}, "1/ps");
    out.write("/rates/3ph_emission_error", r.emission_error_per_ps, {n_t, n_irr, nb}, "1/ps");
  }
  const auto split = [&](const std::string& channel, const std::vector<double>& all,
                         const std::vector<double>& normal) {
    std::vector<double> umklapp(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) umklapp[i] = all[i] - normal[i];
    out.write("/rates/3ph_" + channel + "_normal", normal, {n_t, n_irr, nb}, "1/ps");
    out.write("/rates/3ph_" + channel + "_umklapp", umklapp, {n_t, n_irr, nb}, "1/ps");
  };
  split("absorption", r.absorption_per_ps, r.normal_absorption_per_ps);
  split("emission", r.emission_per_ps, r.normal_emission_per_ps);
  out.write("/phase_space/3ph_weighted_absorption", r.weighted_absorption_ps4, {n_t, n_irr, nb},
            "ps^4");
  out.write("/phase_space/3ph_weighted_emission", r.weighted_emission_ps4, {n_t, n_irr, nb},
            "ps^4");
  out.write("/phase_space/3ph_absorption", r.phase_space_absorption_ps, {n_irr, nb}, "ps");
  out.write("/phase_space/3ph_emission", r.phase_space_emission_ps, {n_irr, nb}, "ps");
  out.write_scalar("/phase_space/3ph_processes_absorption", r.n_absorption, "1");
  out.write_scalar("/phase_space/3ph_processes_emission", r.n_emission, "1");
}

/// Adds the arrays of one temperature. `factor` turns κ of the cell into κ of a sheet.
struct TemperatureWriter {
  const Transport& transport;
  double factor;
  std::int64_t n_irreducible;
  TemperatureSeries* series;

  void tensors(std::size_t t, const char* name, const std::vector<Mat3>& values,
               const char* units = "W/(m K)") const {
    series->add(t, name, flat(values, factor), {std::ssize(values), 3, 3}, units);
  }
  void by_mode(std::size_t t, const char* name, const std::vector<double>& values,
               const char* units) const {
    series->add(t, name, values, {n_irreducible, transport.modes.n_branches}, units);
  }
  void tensors_by_mode(std::size_t t, const char* name, const std::vector<Mat3>& values) const {
    series->add(t, name, flat(values, factor), {n_irreducible, transport.modes.n_branches, 3, 3},
                "W/(m K)");
  }
  void cumulative(std::size_t t, const std::string& group, const Cumulative& sums,
                  const char* units) const {
    series->add(t, group + "/abscissa", sums.abscissa, {std::ssize(sums.abscissa)}, units);
    tensors(t, (group + "/kappa").c_str(), sums.kappa_w_per_mk);
  }
  void write(std::size_t t, const TemperatureResult& r) const;
  void write_converged(std::size_t t, const TemperatureResult& r) const;
};

void TemperatureWriter::write(std::size_t t, const TemperatureResult& r) const {
  by_mode(t, "rate_total", r.rate_per_ps, "1/ps");
  series->add(t, "kappa_subspace", flat({r.kappa_subspace_w_per_mk}, factor), {3, 3}, "W/(m K)");
  tensors_by_mode(t, "mode_kappa_rta", r.mode_kappa_rta);
  by_mode(t, "mean_free_path_rta", mean_free_path_nm(transport, r.field_rta, r.rate_per_ps), "nm");
  series->add(t, "heat_capacity", {r.heat_capacity_j_m3_k}, {}, "J/(m^3 K)");
  series->add(t, "small_grain_kappa_per_size", flat({r.small_grain_w_per_mk_nm}, factor), {3, 3},
              "W/(m K nm)");
  if (r.converged) write_converged(t, r);
  const std::vector<Mat3>& kappa = r.converged ? r.mode_kappa : r.mode_kappa_rta;
  const std::vector<double>& field = r.converged ? r.solution.f : r.field_rta;
  cumulative(t, "cumulative_by_path", cumulative_by_path(transport, kappa, field, r.rate_per_ps),
             "nm");
  cumulative(t, "cumulative_by_omega", cumulative_by_omega(transport, kappa), "rad/ps");
  tensors(t, "spectrum_by_omega/kappa", spectrum_by_omega(transport, kappa).kappa_w_per_mk,
          "W ps/(m K rad)");
}

void TemperatureWriter::write_converged(std::size_t t, const TemperatureResult& r) const {
  tensors_by_mode(t, "mode_kappa", r.mode_kappa);
  series->add(t, "field", r.solution.f, {n_irreducible, transport.modes.n_branches, 3},
              "nm rad/ps");
  by_mode(t, "mean_free_path", mean_free_path_nm(transport, r.solution.f, r.rate_per_ps), "nm");
  by_mode(t, "rate_final", r.final_rate_per_ps, "1/ps");
  tensors(t, "kappa_by_iteration", r.solution.kappa_history_w_per_mk);
  series->add(t, "residual", {r.solution.residual}, {}, "1");
  series->add(t, "iterations", {static_cast<double>(r.solution.iterations)}, {}, "1");
}

}  // namespace

void write_result(const Deck& deck, const ConductivityRun& run, H5Writer& out) {
  const Transport transport{deck.crystal, deck.symmetry, run.modes,
                            deck.control.transport_options()};
  const double factor = sheet_factor(deck.crystal, deck.control.sheet_options());
  write_inputs(deck, out);
  write_modes(run, transport, out);
  write_eigenvectors(run.modes, deck.control.eigenvector_limit_mib, out);
  write_rates(deck, run, out);
  TemperatureSeries series(run.by_temperature.size());
  const TemperatureWriter writer{transport, factor, deck.symmetry.n_irreducible(), &series};
  std::vector<double> temperatures;
  std::vector<Mat3> rta;
  std::vector<Mat3> converged;
  for (std::size_t t = 0; t < run.by_temperature.size(); ++t) {
    const TemperatureResult& r = run.by_temperature[t];
    writer.write(t, r);
    temperatures.push_back(r.temperature_k);
    rta.push_back(r.kappa_rta_w_per_mk);
    if (r.converged) converged.push_back(r.kappa_w_per_mk);
  }
  series.write(out);
  const auto n_t = static_cast<std::int64_t>(temperatures.size());
  if (n_t > 0) {
    out.write("/kappa/temperature", temperatures, {n_t}, "K");
    out.write("/kappa/rta", flat(rta, factor), {n_t, 3, 3}, "W/(m K)");
    if (!run.kappa_relative_error.empty())
      out.write("/kappa/rta_relative_error", run.kappa_relative_error, {n_t}, "1");
    if (!converged.empty())
      out.write("/kappa/converged", flat(converged, factor), {n_t, 3, 3}, "W/(m K)");
  }
  std::string warnings;
  for (const std::string& warning : run.warnings) warnings += warning + "\n";
  out.write_text("/provenance/warnings", warnings);
}

nlohmann::json summarise(const Deck& deck, const ConductivityRun& run, const Device& device) {
  const double factor = sheet_factor(deck.crystal, deck.control.sheet_options());
  nlohmann::json rta = nlohmann::json::array();
  nlohmann::json converged = nlohmann::json::array();
  nlohmann::json iterations = nlohmann::json::array();
  nlohmann::json residuals = nlohmann::json::array();
  nlohmann::json heat = nlohmann::json::array();
  nlohmann::json grain = nlohmann::json::array();
  for (const TemperatureResult& r : run.by_temperature) {
    rta.push_back(json_of(r.kappa_rta_w_per_mk, factor));
    heat.push_back(r.heat_capacity_j_m3_k);
    grain.push_back(json_of(r.small_grain_w_per_mk_nm, factor));
    if (!r.converged) continue;
    converged.push_back(json_of(r.kappa_w_per_mk, factor));
    iterations.push_back(r.solution.iterations);
    residuals.push_back(r.solution.residual);
  }
  const bool iterated = !converged.empty();
  const Control& control = deck.control;
  nlohmann::json summary{
      {"temperatures_k", control.temperatures_k},
      {"kappa_rta_w_per_mk", rta},
      {"kappa_w_per_mk", iterated ? converged : nlohmann::json()},
      {"iterations", iterated ? iterations : nlohmann::json()},
      {"residual", iterated ? residuals : nlohmann::json()},
      {"processes_3ph",
       {{"absorption", run.three_phonon.n_absorption}, {"emission", run.three_phonon.n_emission}}},
      {"heat_capacity_j_m3_k", heat},
      {"small_grain_kappa_w_per_mk_nm", grain},
      {"mesh", {control.mesh[0], control.mesh[1], control.mesh[2]}},
      {"irreducible_points", deck.symmetry.n_irreducible()},
      {"space_group", deck.symmetry.space_group},
      {"scale_broad", control.scale_broad},
      {"broadening", name_of(control.broadening)},
      {"isotopes", control.isotopes},
      {"four_phonon_iteration", control.four_phonon_iteration},
      {"compat", control.compat ? "fourphonon" : "none"},
      {"omega_max_rad_ps",
       *std::max_element(run.modes.omega_rad_ps.begin(), run.modes.omega_rad_ps.end())},
      {"seconds", run.seconds},
      {"device", device.name()},
      {"deck_sha256", deck.digest_sha256},
      {"warnings", run.warnings}};
  if (!run.kappa_relative_error.empty())
    summary["kappa_rta_relative_error"] = run.kappa_relative_error;
  if (control.broadening == Broadening::kFixed) summary["sigma_thz"] = control.sigma_thz;
  if (control.samples_rates_3ph())
    summary["evaluations_3ph"] = std::llround(run.three_phonon.evaluations);
  if (control.sheet_thickness_nm > 0.0) summary["sheet_thickness_nm"] = control.sheet_thickness_nm;
  return summary;
}

}  // namespace quasi::thermal
