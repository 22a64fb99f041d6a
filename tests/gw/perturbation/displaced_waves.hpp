#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/gw/solver/screening/epsilon_file.hpp"

namespace quasi::gw::test {

/// Holds files of built-in silicon at rest and its stored ε⁻¹, and writes states of the crystal
/// with atom 1 displaced along z.
class DisplacedWaves {
 public:
  DisplacedWaves() : rest_(run(kCrystal + "[epsilon]\ncutoff_ry = 2.5\n[sigma]\nband_max = 5\n")) {
    write_wavefunctions(path("WFN"), rest_.field.waves);
    write_field(path("RHO"), rest_.field.density);
    const CoulombInteraction coulomb(rest_.field.crystal(), rest_.field.waves.k_grid, {});
    write_epsilon({path("eps0mat.h5"), path("epsmat.h5")}, rest_.field, rest_.epsilon,
                  rest_.plan.epsilon, coulomb);
  }
  std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }
  const MeanField& rest() const { return rest_.field; }

  Calculation run(const std::string& deck) const {
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    return run_calculation(parse_deck(deck, {}, "deck.toml", directory_.path()), *kernels,
                           std::int64_t{1} << 30, silent);
  }
  /// Returns the deck of the first order of Σ at rest.
  std::string perturbation_deck(const std::string& sigma) const {
    return kCrystal + end_of_deck(sigma) +
           "[perturbation]\natoms = [1]\ndirections = [\"z\"]\nstate_response = \"sternheimer\"\n";
  }
  std::string rest_deck(const std::string& sigma) const {
    return "[meanfield]\nwfn = \"WFN\"\nrho = \"RHO\"\n" + end_of_deck(sigma);
  }
  /// Returns the deck of Σ with inner states of a file.
  std::string inner_deck(const std::string& sigma, const std::string& wfn = "WFN_inner") const {
    return "[meanfield]\nwfn = \"WFN\"\nrho = \"RHO\"\nwfn_inner = \"" + wfn + "\"\n" +
           end_of_deck(sigma);
  }

  /// Makes the states of the crystal with atom 1 displaced along z at all points of the grid.
  Wavefunctions displaced(double z_bohr) const {
    const MeanField& field = rest_.field;
    const Crystal& crystal = field.crystal();
    const PotentialElements potential =
        displaced_potential(EmpiricalCrystal{}, crystal, 0, {0, 0, z_bohr});
    Wavefunctions waves = field.waves;
    waves.header.is_real = false;
    waves.header.title = "WFN-Complex";
    waves.header.crystal.symmetries.resize(1);
    waves.header.crystal.atoms[0].position_alat[2] += z_bohr / crystal.alat_bohr;
    waves.k.clear();
    waves.waves.clear();
    waves.energy_ry.clear();
    waves.occupation.clear();
    for (const ZonePoint& point : field.zone.points()) add_point(potential, point.k, waves);
    const auto n_k = waves.k.size();
    waves.weight.assign(n_k, 1.0 / static_cast<double>(n_k));
    waves.first_occupied.assign(n_k, 1);
    waves.last_occupied.assign(n_k, field.n_occupied);
    return waves;
  }
  void write_displaced(const std::string& name, double z_bohr) const {
    write_wavefunctions(path(name), displaced(z_bohr));
  }

 private:
  static inline const std::string kCrystal =
      "[meanfield]\nsource = \"epm\"\ncutoff_ry = 5.0\nk_grid = [2, 2, 2]\nbands = 18\n";
  std::string end_of_deck(const std::string& sigma) const {
    return "[epsilon]\neps0mat = \"eps0mat.h5\"\nepsmat = \"epsmat.h5\"\n[sigma]\nband_max = 5\n"
           "kpoints = [[0.5, 0, 0]]\nbands = " +
           std::to_string(rest_.plan.sigma.bands) + "\n" + sigma;
  }
  /// Appends the lowest states of the displaced H at one k.
  void add_point(const PotentialElements& potential, const Vec3& k, Wavefunctions& waves) const {
    const Mat3& bdot = waves.header.crystal.bdot;
    const std::vector<IVec3> g = make_g_sphere(bdot, k, waves.wavefunction_cutoff_ry).g;
    const GIndex index(g);
    const auto n = static_cast<std::int64_t>(g.size());
    const auto n_bands = static_cast<std::size_t>(waves.n_bands);
    std::vector<Cplx> h(g.size() * g.size()), states(n_bands * g.size());
    for (std::size_t i = 0; i < g.size(); ++i) {
      for (const auto& [difference, value] : potential)
        if (const std::int32_t j = index.find(g[i] - difference); j >= 0)
          h[i * g.size() + static_cast<std::size_t>(j)] = value;
      const Vec3 at = k + to_real(g[i]);
      h[i * g.size() + i] += metric_dot(bdot, at, at);
    }
    std::vector<double> energy_ry(n_bands);
    const auto kernels = make_gw_kernels(find_device("cpu"));
    kernels->dense().eigen_hermitian(view<const Cplx>(h, n, n),
                                     view<double>(energy_ry, waves.n_bands),
                                     view<Cplx>(states, waves.n_bands, n));
    waves.k.push_back(k);
    waves.waves.push_back({g, {StateCoefficients(states)}});
    waves.energy_ry.insert(waves.energy_ry.end(), energy_ry.begin(), energy_ry.end());
    for (int band = 0; band < waves.n_bands; ++band)
      waves.occupation.push_back(band < rest_.field.n_occupied ? 1.0 : 0.0);
  }
  quasi::test::TemporaryDirectory directory_;
  Calculation rest_;
};

}  // namespace quasi::gw::test
