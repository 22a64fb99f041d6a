#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

// A supercell at Γ made of the states of a primitive cell on its grid.
namespace quasi::gw::test {

/// Returns GaAs on a 3 × 1 × 1 grid. It has no inversion, so that k and −k are different.
inline EmpiricalCrystal chain_of_cells() {
  EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  crystal.name = "gaas";
  crystal.wavefunction_cutoff_ry = 5.0;
  crystal.k_grid = {3, 1, 1};
  crystal.bands = 14;
  crystal.by_velocity = true;
  return crystal;
}

/// Holds states of a primitive cell on its grid, shifted by `shift`, that a supercell folds to Γ.
struct StatesToFold {
  const MeanField& cell;       ///< the primitive cell
  const Wavefunctions& waves;  ///< states at irreducible points of the shifted grid
  const BrillouinZone& zone;   ///< zone of `waves`
  Vec3 shift{};
  int n_bands = 0;
};

/// One state of the supercell: coefficients of each component from the plane wave `first` on, zero
/// elsewhere. It is the state `band` (from 0) at k of the primitive cell.
struct FoldedState {
  Vec3 k{};
  int band = 0;
  double energy_ry;
  bool occupied;
  std::size_t first;
  std::vector<Cplx> coefficients;
};

/// Unfolds the states of all zone points: k + G becomes the reciprocal vector (k + G)·N of the
/// supercell, appended to `sphere`. The states come in ascending order of energy.
inline std::vector<FoldedState> states_of_the_zone(const StatesToFold& from,
                                                   std::vector<IVec3>* sphere) {
  const IVec3& grid = from.cell.waves.k_grid;
  std::vector<FoldedState> states;
  for (const ZonePoint& point : from.cell.zone.points()) {
    const Rotation rotation = from.zone.rotation_to(point.k + from.shift);
    const RotatedWaves waves =
        rotated_waves(from.waves, from.zone.operations(), rotation, 0, 0, from.n_bands);
    const std::size_t first = sphere->size(),
                      row = waves.g.size() * static_cast<std::size_t>(from.cell.n_spinor());
    for (const IVec3& g : waves.g) {
      IVec3 folded{};
      for (int i = 0; i < 3; ++i)
        folded[i] = static_cast<int>(std::lround((point.k[i] + g[i]) * grid[i]));
      sphere->push_back(folded);
    }
    for (int n = 0; n < from.n_bands; ++n)
      states.push_back({point.k,
                        n,
                        from.waves.energy(0, rotation.irreducible, n),
                        n < from.cell.n_occupied,
                        first,
                        {waves.coefficients.data + static_cast<std::size_t>(n) * row,
                         waves.coefficients.data + static_cast<std::size_t>(n + 1) * row}});
  }
  std::stable_sort(states.begin(), states.end(), [](const FoldedState& a, const FoldedState& b) {
    return a.energy_ry < b.energy_ry;
  });
  return states;
}

/// Returns the wavefunctions of the supercell at Γ, made from the states of a primitive cell.
inline Wavefunctions folded_waves(const StatesToFold& from, const MeanFieldHeader& header) {
  const IVec3& grid = from.cell.waves.k_grid;
  KPointWaves all;
  const std::vector<FoldedState> states = states_of_the_zone(from, &all.g);
  Wavefunctions w;
  w.header = header;
  w.wavefunction_cutoff_ry = from.waves.wavefunction_cutoff_ry;
  w.k_grid = {1, 1, 1};
  w.k = {{from.shift[0] * grid[0], from.shift[1] * grid[1], from.shift[2] * grid[2]}};
  w.weight = {1.0};
  w.n_bands = static_cast<int>(states.size());
  const auto n_spinor = static_cast<std::size_t>(from.cell.n_spinor());
  all.coefficients.assign(1, std::vector<Cplx>(states.size() * n_spinor * all.g.size()));
  int n_valence = 0;
  for (std::size_t n = 0; n < states.size(); ++n) {
    w.energy_ry.push_back(states[n].energy_ry);
    w.occupation.push_back(states[n].occupied ? 1.0 : 0.0);
    n_valence += states[n].occupied ? 1 : 0;
    const std::vector<Cplx>& c = states[n].coefficients;
    for (std::size_t i = 0; i < c.size(); ++i) {
      const std::size_t n_pw = c.size() / n_spinor, row = n * n_spinor + i / n_pw;
      all.coefficients[0][row * all.g.size() + states[n].first + i % n_pw] = c[i];
    }
  }
  w.first_occupied = {1};
  w.last_occupied = {n_valence};
  w.waves.push_back(std::move(all));
  return w;
}

/// Returns the supercell N₁ × N₂ × N₃ at Γ with the states and the density of a primitive
/// cell on its grid N₁ × N₂ × N₃.
/// @param crystal  the crystal of `primitive`
inline MeanField folded_supercell(SmallSilicon& primitive, EmpiricalCrystal crystal, int n_bands) {
  const IVec3 grid = crystal.k_grid;
  crystal.repeats = grid;
  crystal.k_grid = {1, 1, 1};
  crystal.bands = (primitive.field.n_occupied + 1) * grid[0] * grid[1] * grid[2];
  MeanField header_only = primitive.make(crystal);
  const MeanField& p = primitive.field;
  // The body of ε⁻¹ at q₀ depends on the direction of q₀ and is averaged over the
  // operations. In the supercell those of the primitive cell act on k·N and have
  // translations in its units.
  std::vector<SymmetryOperation> operations = p.crystal().symmetries;
  for (SymmetryOperation& s : operations)
    for (int i = 0; i < 3; ++i) {
      s.translation[i] /= grid[i];
      for (int j = 0; j < 3; ++j) s.rotation[i][j] = s.rotation[i][j] * grid[i] / grid[j];
    }
  header_only.waves.header.crystal.symmetries = operations;
  header_only.density.header.crystal.symmetries = operations;
  PlaneWaveField density = header_only.density;
  density.values.assign(1, std::vector<Cplx>(density.header.g.size()));
  const GIndex index(density.header.g);
  for (std::size_t i = 0; i < p.density.header.g.size(); ++i) {
    const IVec3& g = p.density.header.g[i];
    density.values[0][static_cast<std::size_t>(
        index.find({grid[0] * g[0], grid[1] * g[1], grid[2] * g[2]}))] =
        static_cast<double>(grid[0] * grid[1] * grid[2]) * p.density.values[0][i];
  }
  const MeanFieldHeader& header = header_only.waves.header;
  std::optional<Wavefunctions> shifted;
  if (!p.by_velocity)
    shifted = folded_waves({.cell = p,
                            .waves = *p.shifted,
                            .zone = *p.shifted_zone,
                            .shift = p.q0,
                            .n_bands = p.n_occupied + 1},
                           header);
  MeanField field = make_mean_field(
      folded_waves({.cell = p, .waves = p.waves, .zone = p.zone, .n_bands = n_bands}, header),
      std::move(shifted), density);
  field.by_velocity = p.by_velocity;
  field.spin_orbit = header_only.spin_orbit;
  if (p.by_velocity)
    for (int i = 0; i < 3; ++i) field.q0[i] = p.q0[i] * grid[i];
  return field;
}

}  // namespace quasi::gw::test
