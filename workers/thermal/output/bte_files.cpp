#include "workers/thermal/output/bte_files.hpp"

#include <cmath>
#include <optional>

#include "workers/backend/error.hpp"
#include "workers/thermal/output/bte_files_4ph.hpp"
#include "workers/thermal/output/bte_text.hpp"

namespace quasi::thermal {
namespace {

void write_mesh(const BteExport& x) {
  TextFile lattice(x.directory / "BTE.ReciprocalLatticeVectors");
  const Mat3 b = x.deck.crystal.reciprocal_per_nm();
  for (int i = 0; i < 3; ++i) {
    for (const double value : b[i]) lattice.fixed(value, 20, 10);
    lattice.text("   # nm-1,b" + std::to_string(i + 1)).end();
  }
  lattice.close();
  const Symmetry& symmetry = x.deck.symmetry;
  const auto fractional = [&](TextFile& file, std::int64_t q) {
    int c[3];
    symmetry.mesh.coordinates(q, c);
    for (int d = 0; d < 3; ++d) file.real(static_cast<double>(c[d]) / symmetry.mesh.n[d], 20, 10);
    file.end();
  };
  TextFile points(x.directory / "BTE.qpoints");
  for (std::int64_t i = 0; i < x.n_irr; ++i) {
    points.integer(i + 1, 9)
        .integer(symmetry.irreducible[i] + 1, 9)
        .integer(symmetry.multiplicity[i], 9)
        .text(" ");
    fractional(points, symmetry.irreducible[i]);
  }
  points.close();
  TextFile full(x.directory / "BTE.qpoints_full");
  for (std::int64_t q = 0; q < symmetry.mesh.size(); ++q) {
    full.integer(q + 1, 9).integer(symmetry.star_of[q] + 1, 9).text(" ");
    fractional(full, q);
  }
  full.close();
}

void write_harmonic(const BteExport& x) {
  const Modes& modes = x.run.modes;
  x.point_file("BTE.omega", [&](std::int64_t row) { return x.omega(row); });
  const auto velocity_file = [&](const char* name, std::int64_t n, const auto& point) {
    TextFile file(x.directory / name);
    for (int s = 0; s < x.nb; ++s)
      for (std::int64_t i = 0; i < n; ++i) {
        for (int d = 0; d < 3; ++d)
          file.real(modes.velocity_km_s[(point(i) * x.nb + s) * 3 + d], 20, 10);
        file.end();
      }
    file.close();
  };
  velocity_file("BTE.v", x.n_irr, [&](std::int64_t i) {
    return static_cast<std::int64_t>(x.deck.symmetry.irreducible[i]);
  });
  velocity_file("BTE.v_full", modes.n_q, [](std::int64_t i) { return i; });
  x.mode_file("BTE.w_boundary", 20, 10, [&](std::int64_t row) {
    const double* v =
        &modes.velocity_km_s[static_cast<std::size_t>(x.transport.mode_of_row(row) * 3)];
    return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  });
  if (!x.run.isotope_per_ps.empty())
    x.mode_file("BTE.w_isotopic", 20, 10,
                [&](std::int64_t row) { return x.run.isotope_per_ps[row]; });
  const DensityOfStates dos = density_of_states(x.transport);
  TextFile total_file(x.directory / "BTE.dos");
  TextFile by_atom(x.directory / "BTE.pdos");
  const int n_atoms = x.deck.crystal.n_atoms();
  for (std::size_t tick = 0; tick < dos.omega_rad_ps.size(); ++tick) {
    total_file.real(dos.omega_rad_ps[tick], 14, 5).real(dos.total_ps[tick], 14, 5).end();
    by_atom.real(dos.omega_rad_ps[tick], 14, 5);
    for (int atom = 0; atom < n_atoms; ++atom)
      by_atom.real(dos.by_atom_ps[tick * n_atoms + atom], 14, 5);
    by_atom.end();
  }
  total_file.close();
  by_atom.close();
}

/// Writes P3 = (2/3)(P+ + P−/2), P± = Σ δ/(Nq² nb³).
void write_phase_space(const BteExport& x) {
  const double nq = static_cast<double>(x.run.modes.n_q);
  const double scale = 1.0 / (nq * nq * x.nb * x.nb * x.nb);
  const auto plus = [&](std::int64_t row) {
    return scale * x.run.three_phonon.phase_space_absorption_ps[row];
  };
  const auto minus = [&](std::int64_t row) {
    return scale * x.run.three_phonon.phase_space_emission_ps[row];
  };
  const auto both = [&](std::int64_t row) { return 2.0 / 3.0 * (plus(row) + 0.5 * minus(row)); };
  x.point_file("BTE.P3_plus", plus);
  x.point_file("BTE.P3_minus", minus);
  x.point_file("BTE.P3", both);
  const auto total_file = [&](const char* name, double value) {
    TextFile file(x.directory / name);
    file.real(value, 26, 17).end();
    file.close();
  };
  total_file("BTE.P3_plus_total", x.mesh_sum(plus));
  total_file("BTE.P3_minus_total", x.mesh_sum(minus));
  total_file("BTE.P3_total", x.mesh_sum(both));
}

/// Writes rates and weighted phase spaces at temperature number `t`.
void write_rates(const BteExport& x, std::size_t t, const TemperatureResult& r) {
  const std::filesystem::path folder = x.temperature_folder(r.temperature_k);
  const ThreePhononRates& three = x.run.three_phonon;
  const std::int64_t offset = static_cast<std::int64_t>(t) * x.n_irr * x.nb;
  const auto rate_file = [&](const char* file, const auto& value) {
    x.mode_file(folder / file, 20, 10, value);
  };
  const auto phase_space_file = [&](const char* file, const auto& value) {
    x.mode_file(folder / file, 14, 5, value);
  };
  rate_file("BTE.w_3ph_plus",
            [&](std::int64_t row) { return three.absorption_per_ps[offset + row]; });
  rate_file("BTE.w_3ph_minus",
            [&](std::int64_t row) { return three.emission_per_ps[offset + row]; });
  rate_file("BTE.w_3ph", [&](std::int64_t row) {
    return three.absorption_per_ps[offset + row] + three.emission_per_ps[offset + row];
  });
  phase_space_file("BTE.WP3_plus",
                   [&](std::int64_t row) { return three.weighted_absorption_ps4[offset + row]; });
  phase_space_file("BTE.WP3_minus",
                   [&](std::int64_t row) { return three.weighted_emission_ps4[offset + row]; });
  phase_space_file("BTE.WP3", [&](std::int64_t row) {
    return three.weighted_absorption_ps4[offset + row] + three.weighted_emission_ps4[offset + row];
  });
  rate_file("BTE.w", [&](std::int64_t row) { return r.rate_per_ps[row]; });
  if (r.converged)
    rate_file("BTE.w_final", [&](std::int64_t row) { return r.final_rate_per_ps[row]; });
}

Mat3 scaled(Mat3 k, double factor) {
  for (Vec3& row : k) row = factor * row;
  return k;
}

/// Writes a third of the trace at the end of a line.
void write_mean(TextFile& file, const Mat3& k) {
  file.real((k[0][0] + k[1][1] + k[2][2]) / 3.0, 20, 10).end();
}

/// Writes κ after every iteration.
void write_history(const BteExport& x, const TemperatureResult& r, double factor) {
  const std::filesystem::path folder = x.directory / x.temperature_folder(r.temperature_k);
  std::vector<Mat3> history{r.kappa_rta_w_per_mk};
  if (r.converged) history = r.solution.kappa_history_w_per_mk;
  TextFile tensors(folder / "BTE.kappa_tensor");
  TextFile scalars(folder / "BTE.kappa_scalar");
  for (std::size_t i = 0; i < history.size(); ++i) {
    const Mat3 k = scaled(history[i], factor);
    tensors.integer(static_cast<std::int64_t>(i), 9);
    tensor(tensors, k, 20, 10);
    tensors.end();
    write_mean(scalars.integer(static_cast<std::int64_t>(i), 9), k);
  }
  tensors.close();
  scalars.close();
}

/// Writes κ of each branch, after the first and the last iteration.
void write_bands(const BteExport& x, const TemperatureResult& r, double factor) {
  TextFile file(x.directory / x.temperature_folder(r.temperature_k) / "BTE.kappa");
  const auto nb = static_cast<std::size_t>(x.nb);
  const auto line = [&](std::int64_t iteration, const std::vector<Mat3>& by_row) {
    std::vector<Mat3> bands(nb, Mat3{});
    for (std::size_t row = 0; row < by_row.size(); ++row)
      for (int i = 0; i < 3; ++i) bands[row % nb][i] = bands[row % nb][i] + factor * by_row[row][i];
    file.integer(iteration, 9);
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i)
        for (const Mat3& k : bands) file.real(k[i][j], 20, 10);
    file.end();
  };
  line(0, r.mode_kappa_rta);
  if (r.converged) line(r.solution.iterations, r.mode_kappa);
  file.close();
}

/// Writes κ summed up to a mean free path and up to a frequency.
void write_cumulative(const BteExport& x, const TemperatureResult& r, double factor) {
  const std::filesystem::path folder = x.directory / x.temperature_folder(r.temperature_k);
  const auto& by_mode = r.converged ? r.mode_kappa : r.mode_kappa_rta;
  const auto& field = r.converged ? r.solution.f : r.field_rta;
  const Cumulative path = cumulative_by_path(x.transport, by_mode, field, r.rate_per_ps);
  const Cumulative spectrum = cumulative_by_omega(x.transport, by_mode);
  TextFile path_scalar(folder / "BTE.cumulative_kappa_scalar");
  TextFile path_tensor(folder / "BTE.cumulative_kappa_tensor");
  TextFile omega_tensor(folder / "BTE.cumulative_kappaVsOmega_tensor");
  const auto tensor_line = [&](TextFile& file, double abscissa, const Mat3& k) {
    file.real(abscissa, 20, 10);
    tensor(file, k, 20, 10);
    file.end();
  };
  for (std::size_t i = 0; i < path.abscissa.size(); ++i) {
    const Mat3 k = scaled(path.kappa_w_per_mk[i], factor);
    write_mean(path_scalar.real(path.abscissa[i], 20, 10), k);
    tensor_line(path_tensor, path.abscissa[i], k);
    tensor_line(omega_tensor, spectrum.abscissa[i], scaled(spectrum.kappa_w_per_mk[i], factor));
  }
  for (TextFile* file : {&path_scalar, &path_tensor, &omega_tensor}) file->close();
}

void write_temperature(const BteExport& x, std::size_t t, const TemperatureResult& r) {
  const double factor = sheet_factor(x.deck.crystal, x.deck.control.sheet_options());
  write_rates(x, t, r);
  write_history(x, r, factor);
  write_bands(x, r, factor);
  write_cumulative(x, r, factor);
  const std::filesystem::path folder = x.directory / x.temperature_folder(r.temperature_k);
  TextFile heat(folder / "BTE.cv");
  heat.real(r.heat_capacity_j_m3_k, 26, 17).end();
  heat.close();
  TextFile grain(folder / "BTE.kappa_sg");
  tensor(grain, scaled(r.small_grain_w_per_mk_nm, factor), 14, 5);
  grain.end();
  grain.close();
}

void write_gruneisen(const BteExport& x, const Derived& derived) {
  x.point_file("BTE.gruneisen",
               [&](std::int64_t row) { return derived.gruneisen[static_cast<std::size_t>(row)]; });
  TextFile all(x.directory / "BTE.gruneisenVsT_total");
  for (std::size_t t = 0; t < x.run.by_temperature.size(); ++t) {
    const double temperature = x.run.by_temperature[t].temperature_k;
    all.fixed(temperature, 7, 1).real(derived.mean_gruneisen[t], 14, 5).end();
    TextFile one(x.directory / x.temperature_folder(temperature) / "BTE.gruneisen_total");
    one.real(derived.mean_gruneisen[t], 26, 17).end();
    one.close();
  }
  all.close();
}

void write_sweep(const BteExport& x) {
  TextFile heat(x.directory / "BTE.cvVsT");
  TextFile grain(x.directory / "BTE.KappaTensorVsT_sg");
  TextFile rta(x.directory / "BTE.KappaTensorVsT_RTA");
  std::optional<TextFile> converged;
  if (x.deck.control.converge) converged.emplace(x.directory / "BTE.KappaTensorVsT_CONV");
  const double factor = sheet_factor(x.deck.crystal, x.deck.control.sheet_options());
  const auto line = [&](TextFile& file, double temperature, const Mat3& k) -> TextFile& {
    file.fixed(temperature, 7, 1);
    tensor(file, scaled(k, factor), 14, 5);
    return file;
  };
  for (const TemperatureResult& r : x.run.by_temperature) {
    heat.fixed(r.temperature_k, 7, 1).real(r.heat_capacity_j_m3_k, 14, 5).end();
    line(grain, r.temperature_k, r.small_grain_w_per_mk_nm).end();
    line(rta, r.temperature_k, r.kappa_rta_w_per_mk).end();
    if (r.converged)
      line(*converged, r.temperature_k, r.kappa_w_per_mk).integer(r.solution.iterations, 6).end();
  }
  for (TextFile* file : {&heat, &grain, &rta}) file->close();
  if (converged) converged->close();
}

/// Writes κ of populations, iterated where it is, and coherences together.
void write_totals(const BteExport& x, const Derived& derived) {
  const double factor = sheet_factor(x.deck.crystal, x.deck.control.sheet_options());
  TextFile file(x.directory / "BTE.KappaTensorVsT_total");
  for (std::size_t t = 0; t < x.run.by_temperature.size(); ++t) {
    const TemperatureResult& r = x.run.by_temperature[t];
    Mat3 total = r.converged ? r.kappa_w_per_mk : r.kappa_rta_w_per_mk;
    for (int i = 0; i < 3; ++i) total[i] = total[i] + derived.coherence[t].kappa_w_per_mk[i];
    file.fixed(r.temperature_k, 7, 1);
    tensor(file, scaled(total, factor), 14, 5);
    file.end();
  }
  file.close();
}

}  // namespace

void write_bte_files(const Deck& deck, const SolvedCase& solved,
                     const std::filesystem::path& directory) {
  const ConductivityRun& run = solved.run;
  const Transport transport{deck.crystal, deck.symmetry, run.modes,
                            deck.control.transport_options()};
  const BteExport x{
      deck, run, transport, directory, run.modes.n_branches, deck.symmetry.n_irreducible()};
  write_mesh(x);
  write_harmonic(x);
  if (run.three_phonon.n_temperatures == 0) return;
  write_phase_space(x);
  for (std::size_t t = 0; t < run.by_temperature.size(); ++t)
    write_temperature(x, t, run.by_temperature[t]);
  write_sweep(x);
  if (solved.derived) write_gruneisen(x, *solved.derived);
  if (solved.derived && !solved.derived->coherence.empty()) write_totals(x, *solved.derived);
  if (solved.four_phonon) write_bte_files_4ph(x, solved.four_phonon->rates);
}

}  // namespace quasi::thermal
