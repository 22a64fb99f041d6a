#pragma once

#include <cmath>
#include <complex>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/gw/support/silicon_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"

// Writes files of a built-in crystal, and of supercells of it in which one atom is displaced.
namespace quasi::gw::test {

/// Describes a displaced supercell of the small GaAs of SupercellFiles.
struct DisplacedSupercell {
  IVec3 repeats{3, 1, 1};
  std::size_t listed = 1;          ///< position of the displaced atom, from 0
  Vec3 by_bohr{0.0, 0.0, 0.004};   ///< displacement, Cartesian
  std::vector<Vec3> k{Vec3{}};     ///< k-points of VKB
  double cutoff_ry = 5.0;          ///< cut-off of the wavefunctions
  double density_cutoff_ry = 0.0;  ///< cut-off of the density; 0: that of WFN
  double vxc_share = 0.0;          ///< V_xc in units of V; 0: no VXC
  bool with_projectors = false;    ///< true: two projectors for each atom, by projector()
};

/// Returns β_p(K) of an atom at the origin in a unit volume: an even function and an odd one.
inline Cplx projector(int p, const Vec3& k_per_bohr) {
  const double falls = std::exp(-0.2 * dot(k_per_bohr, k_per_bohr));
  return p == 0 ? Cplx(falls, 0.0) : Cplx(0.0, falls * (k_per_bohr[0] + 0.5 * k_per_bohr[2]));
}
/// Returns D_pq, which every atom has, Ry.
inline double projector_strength(int p, int q) { return p == q ? (p == 0 ? 1.5 : -0.7) : 0.4; }

/// Holds GaAs at 5 Ry on a 3 × 1 × 1 grid, as files.
struct SupercellFiles {
  quasi::test::TemporaryDirectory directory;
  MeanField field;

  explicit SupercellFiles(const IVec3& grid = {3, 1, 1}) : field(make(grid)) {
    write_files_of(field, directory.path());
  }
  static EmpiricalCrystal crystal(const IVec3& grid) {
    EmpiricalCrystal crystal;
    crystal.name = "gaas";
    crystal.wavefunction_cutoff_ry = 5.0;
    crystal.k_grid = grid;
    crystal.bands = 14;
    return crystal;
  }
  static MeanField make(const IVec3& grid) {
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    return empirical_mean_field(crystal(grid), *kernels, silent);
  }

  /// Writes VSC, VKB and VXC of a displaced supercell. @return the folder
  std::filesystem::path write(const std::string& folder, const DisplacedSupercell& wanted) const;

  /// Writes the folders of +h and −h.
  DisplacedFolders write_pair(const std::string& name, DisplacedSupercell wanted) const {
    const auto forth = write(name + "+", wanted);
    wanted.by_bohr = -1.0 * wanted.by_bohr;
    return {forth, write(name + "-", wanted)};
  }
};

/// Makes the projectors of every atom of a crystal on spheres of plane waves.
inline Projectors make_projectors(const MeanFieldHeader& header, const DisplacedSupercell& wanted) {
  Projectors p;
  p.header = header;
  p.wavefunction_cutoff_ry = wanted.cutoff_ry;
  p.k = wanted.k;
  const Crystal& crystal = header.crystal;
  const std::size_t n_atoms = crystal.atoms.size();
  const int count = wanted.with_projectors ? 2 : 0;
  p.species.assign(n_atoms, 0);
  p.projectors_of_species = {count};
  p.n_projectors = count * static_cast<int>(n_atoms);
  p.max_projectors = count;
  for (std::size_t atom = 0; atom < n_atoms; ++atom)
    for (int row = 0; row < count; ++row)
      for (int column = 0; column < count; ++column)
        p.d_ry.push_back(projector_strength(row, column));
  for (const Vec3& k : wanted.k) {
    p.g.push_back(make_g_sphere(crystal.bdot, k, wanted.cutoff_ry).g);
    p.beta.emplace_back();
    for (const Atom& atom : crystal.atoms)
      for (int row = 0; row < count; ++row)
        for (const IVec3& g : p.g.back()) {
          Vec3 wave{};
          for (std::size_t i = 0; i < 3; ++i)
            wave = wave + crystal.blat_per_bohr * (k[i] + g[i]) * crystal.bvec[i];
          p.beta.back().push_back(
              projector(row, wave) / std::sqrt(crystal.volume_bohr3) *
              std::polar(1.0, -crystal.alat_bohr * dot(wave, atom.position_alat)));
        }
  }
  return p;
}

inline std::filesystem::path SupercellFiles::write(const std::string& folder,
                                                   const DisplacedSupercell& wanted) const {
  EmpiricalCrystal large = crystal(wanted.repeats);
  large.repeats = wanted.repeats;
  PlaneWaveField potential;
  MeanFieldHeader& header = potential.header;
  header.title = "VSC-Complex";
  header.crystal = empirical_crystal(large);
  header.density_cutoff_ry = wanted.density_cutoff_ry > 0.0 ? wanted.density_cutoff_ry
                                                            : field.waves.header.density_cutoff_ry;
  header.g = make_g_sphere(header.crystal.bdot, {}, header.density_cutoff_ry).g;
  const IVec3 extent = component_extent(header.g);
  for (int i = 0; i < 3; ++i) header.fft_grid[i] = good_fft_size(2 * extent[i] + 1);
  if (wanted.repeats == IVec3{1, 1, 1}) header.fft_grid = field.waves.header.fft_grid;
  potential.values.assign(1, std::vector<Cplx>(header.g.size()));
  const GIndex index(header.g);
  for (const auto& [g, value] : displaced_potential(
           large, header.crystal, static_cast<int>(wanted.listed), wanted.by_bohr, true))
    potential.values[0][static_cast<std::size_t>(index.find(g))] = value;
  Vec3& moved = header.crystal.atoms[wanted.listed].position_alat;
  moved = moved + (1.0 / header.crystal.alat_bohr) * wanted.by_bohr;
  const std::filesystem::path path = directory.path() / folder;
  std::filesystem::create_directories(path);
  write_field(path / "VSC", potential);
  Projectors projectors = make_projectors(header, wanted);
  write_projectors(path / "VKB", projectors);
  if (wanted.vxc_share == 0.0) return path;
  header.title = "VXC-Complex";
  for (Cplx& value : potential.values[0]) value *= wanted.vxc_share;
  write_field(path / "VXC", potential);
  return path;
}

}  // namespace quasi::gw::test
