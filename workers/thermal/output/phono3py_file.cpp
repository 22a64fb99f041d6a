#include "workers/thermal/output/phono3py_file.hpp"

#include <string>

#include "workers/io/hdf5.hpp"
#include "workers/thermal/physics/occupation.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

constexpr double kHalfLinewidth_thz = 1.0 / (4.0 * units::kPi);  // γ from w in 1/ps
constexpr double kVelocity_thz_angstrom = 10.0;                  // 1 km/s

/// Appends xx, yy, zz, yz, xz, xy.
void append_voigt(const Mat3& k, double factor, std::vector<double>& out) {
  for (const double x : {k[0][0], k[1][1], k[2][2], k[1][2], k[0][2], k[0][1]})
    out.push_back(factor * x);
}

Mat3 sum_of(const Mat3& a, const Mat3& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }

std::vector<double> scaled(const std::vector<double>& values, double factor) {
  std::vector<double> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) result[i] = factor * values[i];
  return result;
}

/// Writes harmonic quantities, [n_irr], [n_irr][nb] and so on.
void write_harmonic(const Deck& deck, const Transport& t, H5Writer& out) {
  const QMesh& mesh = deck.symmetry.mesh;
  const std::int64_t n_irr = deck.symmetry.n_irreducible();
  const std::int64_t nb = t.modes.n_branches;
  out.write("/mesh", std::vector<std::int64_t>{mesh.n[0], mesh.n[1], mesh.n[2]}, {3}, "1");
  const std::vector<std::int64_t> weight(deck.symmetry.multiplicity.begin(),
                                         deck.symmetry.multiplicity.end());
  out.write("/weight", weight, {n_irr}, "1");
  std::vector<double> qpoint, frequency, velocity, gv_by_gv;
  for (const std::int32_t point : deck.symmetry.irreducible) {
    int c[3];
    mesh.coordinates(point, c);
    for (int d = 0; d < 3; ++d) {
      const double q = static_cast<double>(c[d]) / mesh.n[d];
      qpoint.push_back(q > 0.5 ? q - 1.0 : q);
    }
  }
  for (std::int64_t row = 0; row < t.n_rows(); ++row) {
    const auto mode = static_cast<std::size_t>(t.mode_of_row(row));
    frequency.push_back(t.modes.omega_rad_ps[mode] / (2.0 * units::kPi));
    const double* v = &t.modes.velocity_km_s[mode * 3];
    Mat3 product{};
    for (int i = 0; i < 3; ++i) {
      velocity.push_back(kVelocity_thz_angstrom * v[i]);
      for (int j = 0; j < 3; ++j) product[i][j] = v[i] * v[j];
      product[i] = product[i] + t.velocity_variance(row)[i];
    }
    if (deck.symmetry.folded) product = deck.symmetry.symmetrised(product);
    append_voigt(product,
                 kVelocity_thz_angstrom * kVelocity_thz_angstrom *
                     deck.symmetry.multiplicity[static_cast<std::size_t>(row / nb)],
                 gv_by_gv);
  }
  out.write("/qpoint", qpoint, {n_irr, 3}, "1");
  out.write("/frequency", frequency, {n_irr, nb}, "THz");
  out.write("/group_velocity", velocity, {n_irr, nb, 3}, "THz angstrom");
  out.write("/gv_by_gv", gv_by_gv, {n_irr, nb, 6}, "THz^2 angstrom^2");
}

/// Writes rates that do not depend on the temperature, and the unit of κ.
void write_elastic_rates(const Deck& deck, const ConductivityRun& run, H5Writer& out) {
  const std::int64_t n_irr = deck.symmetry.n_irreducible();
  const std::int64_t nb = run.modes.n_branches;
  if (!run.isotope_per_ps.empty())
    out.write("/gamma_isotope", scaled(run.isotope_per_ps, kHalfLinewidth_thz), {n_irr, nb}, "THz");
  if (!run.boundary_per_ps.empty()) {
    out.write("/gamma_boundary", scaled(run.boundary_per_ps, kHalfLinewidth_thz), {n_irr, nb},
              "THz");
    out.write_scalar("/boundary_mfp", 1e-3 * deck.control.boundary_length_nm, "micrometer");
  }
  // (THz Å)²/Å³ · eV/THz / 2π, with the 2π from the definition of the lifetime.
  const double volume_angstrom3 = 1e3 * deck.crystal.volume_nm3();
  out.write_scalar("/kappa_unit_conversion",
                   1e22 * units::kElementaryCharge_c / (2.0 * units::kPi) / volume_angstrom3,
                   "W/(m K) / (THz angstrom^2 eV/K)");
}

/// Rates of inelastic scattering of one row, 1/ps.
struct Rate {
  double all = 0.0;
  double normal = 0.0;
};

Rate inelastic_rate(const SolvedCase& solved, std::int64_t n_rows, int t, std::int64_t row) {
  const ThreePhononRates& three = solved.run.three_phonon;
  const auto at = static_cast<std::size_t>(t * n_rows + row);
  Rate rate{three.absorption_per_ps[at] + three.emission_per_ps[at],
            three.normal_absorption_per_ps[at] + three.normal_emission_per_ps[at]};
  if (!solved.four_phonon) return rate;
  const Rates4ph& four = solved.four_phonon->rates;
  for (int c = 0; c < kChannels4ph; ++c) {
    const auto channel = static_cast<Channel4ph>(c);
    rate.normal += four.normal_per_ps[static_cast<std::size_t>(four.at(channel, t, row))];
    rate.all += four.rate_per_ps(channel, t, row);
  }
  return rate;
}

/// Writes half linewidths and heat capacities, [nT][n_irr][nb].
void write_rates(const Deck& deck, const SolvedCase& solved, const Transport& t, H5Writer& out) {
  const PhysicalConstants& constants = deck.control.constants();
  std::vector<double> temperature, gamma, gamma_n, gamma_u, capacity;
  for (std::size_t k = 0; k < solved.run.by_temperature.size(); ++k) {
    const double temperature_k = solved.run.by_temperature[k].temperature_k;
    temperature.push_back(temperature_k);
    for (std::int64_t row = 0; row < t.n_rows(); ++row) {
      const Rate rate = inelastic_rate(solved, t.n_rows(), static_cast<int>(k), row);
      gamma.push_back(kHalfLinewidth_thz * rate.all);
      gamma_n.push_back(kHalfLinewidth_thz * rate.normal);
      gamma_u.push_back(kHalfLinewidth_thz * (rate.all - rate.normal));
      const double omega = t.modes.omega_rad_ps[static_cast<std::size_t>(t.mode_of_row(row))];
      capacity.push_back(
          omega > 0.0 ? heat_capacity_kb(omega, temperature_k, constants.hbar_over_kb_k_ps()) *
                            constants.kb_1e23_j_k * 1e-23 / units::kElementaryCharge_c
                      : 0.0);
    }
  }
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(temperature.size()),
                                        deck.symmetry.n_irreducible(), t.modes.n_branches};
  out.write("/temperature", temperature, {shape[0]}, "K");
  out.write("/gamma", gamma, shape, "THz");
  out.write("/gamma_N", gamma_n, shape, "THz");
  out.write("/gamma_U", gamma_u, shape, "THz");
  out.write("/heat_capacity", capacity, shape, "eV/K");
}

/// Writes κ in total, [nT][6], and by mode, [nT][n_irr][nb][6]. phono3py divides a mode's κ by the
/// number of mesh points later, so the share of a mode is multiplied by that number.
void write_kappa(const Deck& deck, const SolvedCase& solved, H5Writer& out) {
  const std::vector<TemperatureResult>& results = solved.run.by_temperature;
  const auto n_q = static_cast<double>(solved.run.modes.n_q);
  std::vector<double> kappa, mode_kappa, kappa_rta, mode_kappa_rta, kappa_c, total, total_rta;
  bool converged = true;
  for (std::size_t k = 0; k < results.size(); ++k) {
    const TemperatureResult& r = results[k];
    converged = converged && r.converged;
    append_voigt(r.kappa_rta_w_per_mk, 1.0, kappa_rta);
    for (const Mat3& share : r.mode_kappa_rta) append_voigt(share, n_q, mode_kappa_rta);
    if (r.converged) {
      append_voigt(r.kappa_w_per_mk, 1.0, kappa);
      for (const Mat3& share : r.mode_kappa) append_voigt(share, n_q, mode_kappa);
    }
    if (!solved.derived || solved.derived->coherence.empty()) continue;
    const Mat3& coherence = solved.derived->coherence[k].kappa_w_per_mk;
    append_voigt(coherence, 1.0, kappa_c);
    append_voigt(sum_of(r.kappa_rta_w_per_mk, coherence), 1.0, total_rta);
    append_voigt(sum_of(r.kappa_w_per_mk, coherence), 1.0, total);
  }
  const auto n_t = static_cast<std::int64_t>(results.size());
  const std::vector<std::int64_t> by_mode{n_t, deck.symmetry.n_irreducible(),
                                          solved.run.modes.n_branches, 6};
  if (converged) {
    out.write("/kappa", kappa, {n_t, 6}, "W/(m K)");
    out.write("/mode_kappa", mode_kappa, by_mode, "W/(m K)");
  }
  out.write(converged ? "/kappa_RTA" : "/kappa", kappa_rta, {n_t, 6}, "W/(m K)");
  out.write(converged ? "/mode_kappa_RTA" : "/mode_kappa", mode_kappa_rta, by_mode, "W/(m K)");
  if (kappa_c.empty()) return;
  out.write("/kappa_C", kappa_c, {n_t, 6}, "W/(m K)");
  out.write("/kappa_TOT_RTA", total_rta, {n_t, 6}, "W/(m K)");
  if (converged) out.write("/kappa_TOT_exact", total, {n_t, 6}, "W/(m K)");
}

}  // namespace

void write_phono3py_file(const Deck& deck, const SolvedCase& solved,
                         const std::filesystem::path& directory) {
  const Transport t{deck.crystal, deck.symmetry, solved.run.modes,
                    deck.control.transport_options()};
  const auto& n = deck.symmetry.mesh.n;
  H5Writer out(directory / ("kappa-m" + std::to_string(n[0]) + std::to_string(n[1]) +
                            std::to_string(n[2]) + ".hdf5"));
  write_harmonic(deck, t, out);
  write_elastic_rates(deck, solved.run, out);
  if (!solved.run.by_temperature.empty()) {
    write_rates(deck, solved, t, out);
    write_kappa(deck, solved, out);
  }
  out.commit();
}

}  // namespace quasi::thermal
