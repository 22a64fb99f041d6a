// A 2×2×2 supercell at Γ has the Σ of the primitive cell on the 2×2×2 grid. Symmetry, stars, phases
// and umklapps enter the primitive calculation only, so that this is the strongest check of the
// unfolding from end to end.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

/// States of a primitive cell on its grid, shifted by `shift`, which a supercell folds onto Γ.
struct StatesToFold {
  const MeanField& cell;       ///< the primitive cell
  const Wavefunctions& waves;  ///< states at irreducible points of the shifted grid
  const BrillouinZone& zone;   ///< zone of `waves`
  Vec3 shift{};
  int n_bands = 0;
};

/// One state of the supercell: coefficients from the plane wave `first` on, zero elsewhere.
struct FoldedState {
  double energy_ry;
  bool occupied;
  std::size_t first;
  std::vector<Cplx> coefficients;
};

/// Unfolds the states of all zone points: k + G becomes the reciprocal vector (k + G)·N of the
/// supercell, appended to `sphere`. The states come in ascending order of energy.
std::vector<FoldedState> states_of_the_zone(const StatesToFold& from, std::vector<IVec3>* sphere) {
  const IVec3& grid = from.cell.waves.k_grid;
  std::vector<FoldedState> states;
  for (const ZonePoint& point : from.cell.zone.points()) {
    const Rotation rotation = from.zone.rotation_to(point.k + from.shift);
    const RotatedWaves waves =
        rotated_waves(from.waves, from.zone.operations(), rotation, 0, 0, from.n_bands);
    const std::size_t first = sphere->size(), n_pw = waves.g.size();
    for (const IVec3& g : waves.g) {
      IVec3 folded{};
      for (int i = 0; i < 3; ++i)
        folded[i] = static_cast<int>(std::lround((point.k[i] + g[i]) * grid[i]));
      sphere->push_back(folded);
    }
    for (int n = 0; n < from.n_bands; ++n)
      states.push_back({from.waves.energy(0, rotation.irreducible, n),
                        n < from.cell.n_occupied,
                        first,
                        {waves.coefficients.data + static_cast<std::size_t>(n) * n_pw,
                         waves.coefficients.data + static_cast<std::size_t>(n + 1) * n_pw}});
  }
  std::stable_sort(states.begin(), states.end(), [](const FoldedState& a, const FoldedState& b) {
    return a.energy_ry < b.energy_ry;
  });
  return states;
}

/// Wavefunctions of the supercell at Γ made of the states of a primitive cell.
Wavefunctions folded_waves(const StatesToFold& from, const MeanFieldHeader& header) {
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
  all.coefficients.assign(1, std::vector<Cplx>(states.size() * all.g.size()));
  int n_valence = 0;
  for (std::size_t n = 0; n < states.size(); ++n) {
    w.energy_ry.push_back(states[n].energy_ry);
    w.occupation.push_back(states[n].occupied ? 1.0 : 0.0);
    n_valence += states[n].occupied ? 1 : 0;
    std::copy(states[n].coefficients.begin(), states[n].coefficients.end(),
              all.coefficients[0].begin() +
                  static_cast<std::ptrdiff_t>(n * all.g.size() + states[n].first));
  }
  w.first_occupied = {1};
  w.last_occupied = {n_valence};
  w.waves.push_back(std::move(all));
  return w;
}

/// Crystal of the primitive cell. It has one band more than are summed, so that a multiplet that
/// the last summed band splits would be seen. q₀ is 1e-5, because the supercell shifts all its q by
/// it.
EmpiricalCrystal primitive_crystal() {
  EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  crystal.wavefunction_cutoff_ry = 5.0;
  crystal.bands = 14;
  crystal.q0 = {1e-5, 0.0, 0.0};
  return crystal;
}

/// The 2×2×2 supercell at Γ with the states and the density of the primitive cell on its 2×2×2
/// grid.
MeanField supercell_of(SmallSilicon& primitive, int n_bands) {
  EmpiricalCrystal large = primitive_crystal();
  large.repeats = {2, 2, 2};
  large.k_grid = {1, 1, 1};
  large.bands = 40;
  MeanField header_only = primitive.make(large);
  const MeanField& p = primitive.field;
  // The body of ε⁻¹ at q₀ depends on the direction of q₀ and is averaged over the operations.
  // Those of the primitive cell have equal integer matrices in the supercell, and translations in
  // its units.
  std::vector<SymmetryOperation> operations = p.crystal().symmetries;
  for (SymmetryOperation& s : operations) s.translation = 0.5 * s.translation;
  header_only.waves.header.crystal.symmetries = operations;
  header_only.density.header.crystal.symmetries = operations;
  PlaneWaveField density = header_only.density;
  density.values.assign(1, std::vector<Cplx>(density.header.g.size()));
  const GIndex index(density.header.g);
  for (std::size_t i = 0; i < p.density.header.g.size(); ++i) {
    const IVec3& g = p.density.header.g[i];
    density.values[0][static_cast<std::size_t>(index.find({2 * g[0], 2 * g[1], 2 * g[2]}))] =
        8.0 * p.density.values[0][i];
  }
  const MeanFieldHeader& header = header_only.waves.header;
  return make_mean_field(
      folded_waves({.cell = p, .waves = p.waves, .zone = p.zone, .n_bands = n_bands}, header),
      folded_waves(
          {.cell = p, .waves = *p.shifted, .zone = *p.shifted_zone, .shift = p.q0, .n_bands = 5},
          header),
      density);
}

/// Compares X + Σ_c of states with equal energy by their mean, because the supercell gathers whole
/// stars in no particular order: 1e-4 eV.
void expect_equal_means(const MeanField& p, const std::vector<SelfEnergyAtK>& cell,
                        const MeanField& folded, const SelfEnergyAtK& super) {
  int compared = 0;
  for (const SelfEnergyAtK& at : cell)
    for (const auto& [begin, end] : multiplets(p.waves, 0, at.k_index, 0, 8)) {
      double mean = 0.0, folded_mean = 0.0;
      int count = 0;
      const double energy = p.waves.energy(0, at.k_index, begin);
      for (int n = begin; n < end; ++n) {
        const auto l = static_cast<std::size_t>(n);
        mean += (at.x_ry[l] + (at.sx_ry[0][l] + at.ch_ry[0][l]).real()) / (end - begin);
      }
      for (int n = 0; n < folded.waves.n_bands; ++n) {
        if (std::abs(folded.waves.energy(0, 0, n) - energy) > 1e-8) continue;
        const auto l = static_cast<std::size_t>(n);
        folded_mean += super.x_ry[l] + (super.sx_ry[0][l] + super.ch_ry[0][l]).real();
        ++count;
      }
      ASSERT_GT(count, 0);
      EXPECT_NEAR(folded_mean / count * kRydberg_ev, mean * kRydberg_ev, 1e-4)
          << "k " << at.k_index << " band " << begin + 1;
      ++compared;
    }
  EXPECT_GT(compared, 10);
}

TEST(Flavours, SupercellAtGammaEqualsThePrimitiveGrid) {
  SmallSilicon primitive(primitive_crystal());
  const MeanField& p = primitive.field;
  const int n_bands = band_count_without_split(p.waves, 13, 5, "bands");
  ASSERT_EQ(p.n_occupied, 4);
  const MeanField folded = supercell_of(primitive, n_bands);
  ASSERT_EQ(folded.n_occupied, 32);
  const CoulombInteraction coulomb(folded.crystal(), folded.waves.k_grid, {});
  SilentProgress silent;
  const std::vector<DielectricMatrix> epsilon{dielectric_matrix(
      folded, folded.q0, {.epsilon_cutoff_ry = 3.0, .bands = folded.waves.n_bands}, coulomb,
      *primitive.kernels, silent)};
  std::vector<DielectricMatrix> primitive_epsilon;
  for (const Vec3& q : screening_points(p))
    primitive_epsilon.push_back(dielectric_matrix(p, q,
                                                  {.epsilon_cutoff_ry = 3.0, .bands = n_bands},
                                                  primitive.coulomb, *primitive.kernels, silent));
  EXPECT_NEAR(epsilon[0].inverse[0][0].real(), primitive_epsilon[0].inverse[0][0].real(), 1e-7);

  SigmaOptions o{.bands = folded.waves.n_bands,
                 .bare_cutoff_ry = 5.0,
                 .screened_cutoff_ry = 3.0,
                 .band_min = 1,
                 .band_max = folded.waves.n_bands,
                 .kpoints = {0}};
  o.slope = true;
  const auto super = self_energy(folded, epsilon, o, {coulomb, *primitive.kernels, silent});
  SigmaOptions small = o;
  small.bands = n_bands;
  small.band_max = 8;
  small.kpoints = {0, 1, 2};
  expect_equal_means(p, primitive.sigma(p, primitive_epsilon, small), folded, super[0]);
}

}  // namespace
}  // namespace quasi::gw
