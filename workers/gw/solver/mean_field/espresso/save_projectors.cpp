#include <algorithm>
#include <cmath>

#include "workers/gw/solver/mean_field/espresso/radial_transforms.hpp"
#include "workers/gw/solver/mean_field/espresso/save_potentials.hpp"

// Makes the projectors of PREFIX.save,
//
//   β(K) = (−i)^l Y_lm(K) f(|K|) e^{−iK·R} / √Ω,   K = k + G,
//
// of an atom at R, with the function f of RadialTable (docs/theory/gw.md 1.5).
namespace quasi::gw {
namespace {

/// Holds the radial parts of the projectors of one species.
struct SpeciesTables {
  std::vector<RadialTable> tables;
  int components = 0;  ///< number of projectors of one atom, Σ (2l + 1) over the tables
};

SpeciesTables tables_of(const Pseudopotential& pseudo, double q_max) {
  SpeciesTables species;
  for (std::size_t i = 0; i < pseudo.projectors.size(); ++i) {
    species.tables.emplace_back(pseudo, i, q_max);
    species.components += 2 * species.tables.back().l() + 1;
  }
  return species;
}

/// Fills D of one atom, Ry, [edge][edge]. D couples projectors of equal l and m.
void fill_d(const Pseudopotential& pseudo, std::size_t edge, double* d) {
  const std::size_t n = pseudo.projectors.size();
  for (std::size_t i = 0, first = 0; i < n; first += 2 * pseudo.projectors[i].l + 1, ++i)
    for (std::size_t j = 0, second = 0; j < n; second += 2 * pseudo.projectors[j].l + 1, ++j) {
      if (pseudo.projectors[i].l != pseudo.projectors[j].l) continue;
      for (std::size_t m = 0; m < 2 * static_cast<std::size_t>(pseudo.projectors[i].l) + 1; ++m)
        d[(second + m) * edge + first + m] = pseudo.d_ry[i * n + j];
    }
}

/// Writes β of all projectors of one atom at one plane wave.
/// @param at_per_bohr  k + G, Cartesian, 1/Bohr
/// @param factor       e^{−i(k+G)·R}/√Ω
/// @param stride       distance between the projectors in `to`, in elements
void write_atom(const SpeciesTables& species, const Vec3& at_per_bohr, const Cplx& factor,
                std::size_t stride, Cplx* to) {
  const Cplx phases[] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}};
  const double length = std::sqrt(dot(at_per_bohr, at_per_bohr));
  double harmonics[kMostComponents];
  for (const RadialTable& table : species.tables) {
    real_harmonics(table.l(), at_per_bohr, harmonics);
    const Cplx radial = table.at(length) * phases[table.l()] * factor;
    for (int m = 0; m < 2 * table.l() + 1; ++m, to += stride) *to = radial * harmonics[m];
  }
}

/// Returns β of the projectors of all atoms at one k-point, [projector][plane wave].
/// @param species  tables of each species
/// @param g        plane waves G of the k-point
std::vector<Cplx> projectors_at(const EspressoSave& save, const std::vector<SpeciesTables>& species,
                                const Vec3& k, const std::vector<IVec3>& g, int n_projectors) {
  const Crystal& crystal = save.crystal();
  const double norm = 1.0 / std::sqrt(crystal.volume_bohr3);
  std::vector<Cplx> beta(static_cast<std::size_t>(n_projectors) * g.size());
#pragma omp parallel for
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(g.size()); ++i) {
    const Vec3 reduced = k + to_real(g[static_cast<std::size_t>(i)]);
    const Mat3& b = crystal.bvec;
    const Vec3 cartesian =
        crystal.blat_per_bohr * (reduced[0] * b[0] + (reduced[1] * b[1] + reduced[2] * b[2]));
    Cplx* to = beta.data() + i;
    for (std::size_t s = 0; s < species.size(); ++s)
      for (std::size_t atom = 0; atom < save.species_of_atom.size(); ++atom) {
        if (save.species_of_atom[atom] != static_cast<int>(s)) continue;
        const Vec3 position = multiply(crystal.bvec, crystal.atoms[atom].position_alat);
        const Cplx factor = std::polar(norm, -2.0 * kPi * dot(reduced, position));
        write_atom(species[s], cartesian, factor, g.size(), to);
        to += static_cast<std::size_t>(species[s].components) * g.size();
      }
  }
  return beta;
}

}  // namespace

Projectors projectors_of_save(const EspressoSave& save) {
  Projectors all{.header = save.bands.header};
  all.header.title = "VKB-Complex";
  all.wavefunction_cutoff_ry = save.bands.wavefunction_cutoff_ry;
  all.k = save.bands.k;
  all.species = save.species_of_atom;
  std::vector<Pseudopotential> pseudo;
  std::vector<SpeciesTables> species;
  for (const std::string& name : save.pseudo_file) {
    pseudo.push_back(read_upf(save.folder / name));
    species.push_back(tables_of(pseudo.back(), std::sqrt(all.wavefunction_cutoff_ry)));
    all.projectors_of_species.push_back(species.back().components);
    all.max_projectors = std::max(all.max_projectors, species.back().components);
  }
  for (const int s : all.species)
    all.n_projectors += all.projectors_of_species[static_cast<std::size_t>(s)];
  const auto edge = static_cast<std::size_t>(all.max_projectors);
  const std::size_t n_atoms = all.species.size();
  const auto n_spins = static_cast<std::size_t>(all.header.n_spins);
  all.d_ry.assign(n_spins * n_atoms * edge * edge, 0.0);
  for (std::size_t i = 0; i < n_spins * n_atoms; ++i)
    fill_d(pseudo[static_cast<std::size_t>(all.species[i % n_atoms])], edge,
           all.d_ry.data() + i * edge * edge);
  for (int ik = 0; ik < save.n_k(); ++ik) {
    all.g.push_back(read_espresso_plane_waves(save, ik));
    std::vector<Cplx> beta = projectors_at(save, species, all.k[static_cast<std::size_t>(ik)],
                                           all.g.back(), all.n_projectors);
    const std::size_t of_spin = beta.size();
    for (std::size_t spin = 1; spin < n_spins; ++spin) {
      beta.resize(beta.size() + of_spin);
      std::copy_n(beta.begin(), of_spin, beta.end() - static_cast<std::ptrdiff_t>(of_spin));
    }
    all.beta.push_back(std::move(beta));
  }
  return all;
}

}  // namespace quasi::gw
