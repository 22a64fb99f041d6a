#include "workers/thermal/output/phono3py_file.hpp"

#include <string>

#include "workers/io/hdf5.hpp"
#include "workers/thermal/physics/occupation.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

constexpr double kHalfLinewidth_thz = 1.0 / (4.0 * units::kPi);  // γ from w in 1/ps
constexpr double kVelocity_thz_angstrom = 10.0;                  // 1 km/s

/// xx, yy, zz, yz, xz, xy.
void append_voigt(const Mat3& k, double factor, std::vector<double>& out) {
  for (const double x : {k[0][0], k[1][1], k[2][2], k[1][2], k[0][2], k[0][1]})
    out.push_back(factor * x);
}

std::vector<double> scaled(const std::vector<double>& values, double factor) {
  std::vector<double> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) result[i] = factor * values[i];
  return result;
}

}  // namespace

void write_phono3py_file(const Deck& deck, const SolvedCase& solved,
                         const std::filesystem::path& directory) {
  const ConductivityRun& run = solved.run;
  const Transport t{deck.crystal, deck.symmetry, run.modes, deck.control};
  const QMesh& mesh = deck.symmetry.mesh;
  const std::int64_t n_irr = deck.symmetry.n_irreducible();
  const std::int64_t nb = run.modes.n_branches;
  const auto n_t = static_cast<std::int64_t>(run.by_temperature.size());
  const PhysicalConstants& constants = deck.control.constants();
  H5Writer out(directory / ("kappa-m" + std::to_string(mesh.n[0]) + std::to_string(mesh.n[1]) +
                            std::to_string(mesh.n[2]) + ".hdf5"));
  out.write("/mesh", std::vector<std::int64_t>{mesh.n[0], mesh.n[1], mesh.n[2]}, {3}, "1");
  const std::vector<std::int64_t> weight(deck.symmetry.multiplicity.begin(),
                                         deck.symmetry.multiplicity.end());
  out.write("/weight", weight, {n_irr}, "1");
  std::vector<double> qpoint, frequency, velocity, gv_by_gv;
  for (std::int64_t row = 0; row < t.n_rows(); ++row) {
    const std::int64_t mode = t.mode_of_row(row);
    if (row % nb == 0) {
      int c[3];
      mesh.coordinates(deck.symmetry.irreducible[static_cast<std::size_t>(row / nb)], c);
      for (int d = 0; d < 3; ++d) {
        const double q = static_cast<double>(c[d]) / mesh.n[d];
        qpoint.push_back(q > 0.5 ? q - 1.0 : q);
      }
    }
    frequency.push_back(run.modes.omega_rad_ps[static_cast<std::size_t>(mode)] /
                        (2.0 * units::kPi));
    const double* v = &run.modes.velocity_km_s[static_cast<std::size_t>(mode * 3)];
    Mat3 product{};
    for (int i = 0; i < 3; ++i) {
      velocity.push_back(kVelocity_thz_angstrom * v[i]);
      for (int j = 0; j < 3; ++j) product[i][j] = v[i] * v[j];
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
  if (!run.isotope_per_ps.empty())
    out.write("/gamma_isotope", scaled(run.isotope_per_ps, kHalfLinewidth_thz), {n_irr, nb}, "THz");
  if (!run.boundary_per_ps.empty()) {
    out.write("/gamma_boundary", scaled(run.boundary_per_ps, kHalfLinewidth_thz), {n_irr, nb},
              "THz");
    out.write_scalar("/boundary_mfp", 1e-3 * deck.control.boundary_length_nm, "micrometer");
  }
  // (THz Å)²/Å³ · eV/THz / 2π, the 2π from the definition of the lifetime.
  const double volume_angstrom3 = 1e3 * deck.crystal.volume_nm3();
  out.write_scalar("/kappa_unit_conversion",
                   1e22 * units::kElementaryCharge_c / (2.0 * units::kPi) / volume_angstrom3,
                   "W/(m K) / (THz angstrom^2 eV/K)");
  if (n_t == 0) {
    out.commit();
    return;
  }
  std::vector<double> temperature, gamma, gamma_n, gamma_u, capacity, kappa, mode_kappa, kappa_rta,
      mode_kappa_rta, kappa_c;
  const ThreePhononRates& three = run.three_phonon;
  const double n_q = static_cast<double>(run.modes.n_q);
  bool converged = true;
  for (std::int64_t k = 0; k < n_t; ++k) {
    const TemperatureResult& r = run.by_temperature[static_cast<std::size_t>(k)];
    converged = converged && r.converged;
    temperature.push_back(r.temperature_k);
    for (std::int64_t row = 0; row < t.n_rows(); ++row) {
      const auto at = static_cast<std::size_t>(k * t.n_rows() + row);
      double normal = three.normal_absorption_per_ps[at] + three.normal_emission_per_ps[at];
      double all = three.absorption_per_ps[at] + three.emission_per_ps[at];
      if (solved.four_phonon) {
        const Rates4ph& four = solved.four_phonon->rates;
        for (int c = 0; c < kChannels4ph; ++c) {
          const auto channel = static_cast<Channel4ph>(c);
          normal += four.normal_per_ps[static_cast<std::size_t>(
              four.at(channel, static_cast<int>(k), row))];
          all += four.rate_per_ps(channel, static_cast<int>(k), row);
        }
      }
      gamma.push_back(kHalfLinewidth_thz * all);
      gamma_n.push_back(kHalfLinewidth_thz * normal);
      gamma_u.push_back(kHalfLinewidth_thz * (all - normal));
      const double omega = run.modes.omega_rad_ps[static_cast<std::size_t>(t.mode_of_row(row))];
      capacity.push_back(
          omega > 0.0 ? heat_capacity_kb(omega, r.temperature_k, constants.hbar_over_kb_k_ps()) *
                            constants.kb_1e23_j_k * 1e-23 / units::kElementaryCharge_c
                      : 0.0);
      // Here a mode's κ is its share of the mean over the mesh; there it is divided by Nq
      // afterwards.
      append_voigt(r.mode_kappa_rta[static_cast<std::size_t>(row)], n_q, mode_kappa_rta);
      if (r.converged) append_voigt(r.mode_kappa[static_cast<std::size_t>(row)], n_q, mode_kappa);
    }
    append_voigt(r.kappa_rta_w_per_mk, 1.0, kappa_rta);
    if (r.converged) append_voigt(r.kappa_w_per_mk, 1.0, kappa);
    if (solved.derived && !solved.derived->coherence.empty())
      append_voigt(solved.derived->coherence[static_cast<std::size_t>(k)].kappa_w_per_mk, 1.0,
                   kappa_c);
  }
  out.write("/temperature", temperature, {n_t}, "K");
  out.write("/gamma", gamma, {n_t, n_irr, nb}, "THz");
  out.write("/gamma_N", gamma_n, {n_t, n_irr, nb}, "THz");
  out.write("/gamma_U", gamma_u, {n_t, n_irr, nb}, "THz");
  out.write("/heat_capacity", capacity, {n_t, n_irr, nb}, "eV/K");
  if (converged) {
    out.write("/kappa", kappa, {n_t, 6}, "W/(m K)");
    out.write("/mode_kappa", mode_kappa, {n_t, n_irr, nb, 6}, "W/(m K)");
  }
  out.write(converged ? "/kappa_RTA" : "/kappa", kappa_rta, {n_t, 6}, "W/(m K)");
  out.write(converged ? "/mode_kappa_RTA" : "/mode_kappa", mode_kappa_rta, {n_t, n_irr, nb, 6},
            "W/(m K)");
  if (!kappa_c.empty()) out.write("/kappa_C", kappa_c, {n_t, 6}, "W/(m K)");
  out.commit();
}

}  // namespace quasi::thermal
