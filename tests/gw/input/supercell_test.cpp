// A 2×2×2 supercell at Γ has the Σ of the primitive cell on the 2×2×2 grid. Symmetry, stars, phases
// and umklapps enter the primitive calculation only, so that this is the strongest check of the
// unfolding from end to end.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/gw/support/folded_cell.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

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
  const MeanField folded = test::folded_supercell(primitive, primitive_crystal(), n_bands);
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
