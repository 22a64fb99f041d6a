// Laws of first orders in displacements: inversion, rotations, traces, rigid shifts.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/gw/solver/perturbation/finite_displacements/finite_difference.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

/// 1e-8 eV/Bohr.
constexpr double kVanishing_ry = 1e-8 / kRydberg_ev;

/// Silicon at Γ: Γ1 and Γ25' (bands 1, 2 to 4) are even, Γ15 and Γ2' (5 to 7, 8) are odd.
class DisplacementLaws : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    SmallSilicon silicon;
    SigmaOptions options = silicon.options();
    options.kpoints = {0};
    SilentProgress silent;
    DeviceTeam team(*silicon.kernels);
    Checkpoint none;
    found_ = std::make_unique<DisplacementElements>(
        displacement_elements({SmallSilicon::small_crystal(), {.wanted = true}}, silicon.field,
                              silicon.epsilon, options, {silicon.coulomb, team, none, silent}));
    ASSERT_EQ(found_->band_max, 8);
  }
  static void TearDownTestSuite() { found_.reset(); }

  static const ElementsAtK& at(std::size_t atom, std::size_t axis) {
    return found_->at[3 * atom + axis][0];
  }
  /// Both levels of ⟨l|∂|m⟩ for atoms displaced by 1 and `second` Bohr; bands from 0.
  static std::pair<double, double> sizes_ry(std::size_t axis, double second, std::size_t l,
                                            std::size_t m) {
    const ElementsAtK &a = at(0, axis), &b = at(1, axis);
    const std::size_t i = l * 8 + m;
    return {std::abs(a.mean_field[i] + second * b.mean_field[i]),
            std::abs(a.sigma(i) + second * b.sigma(i))};
  }
  static std::unique_ptr<DisplacementElements> found_;
};
std::unique_ptr<DisplacementElements> DisplacementLaws::found_;

// A rigid shift is odd, so that it couples states of opposite parity alone. The optical pattern is
// even.
TEST_F(DisplacementLaws, InversionForbidsElements) {
  double allowed = 0.0, allowed_sigma = 0.0;
  for (std::size_t axis = 0; axis < 3; ++axis)
    for (std::size_t l = 0; l < 8; ++l)
      for (std::size_t m = 0; m < 8; ++m) {
        const bool same_parity = (l < 4) == (m < 4);
        const auto [g, sigma] = sizes_ry(axis, same_parity ? 1.0 : -1.0, l, m);
        EXPECT_LT(g, kVanishing_ry) << l << " " << m;
        EXPECT_LT(sigma, kVanishing_ry) << l << " " << m;
        const auto [other, other_sigma] = sizes_ry(axis, same_parity ? -1.0 : 1.0, l, m);
        allowed = std::max(allowed, other);
        allowed_sigma = std::max(allowed_sigma, other_sigma);
      }
  EXPECT_GT(allowed, 0.1);
  EXPECT_GT(allowed_sigma, 0.01);
}

// The site has the symmetry of a tetrahedron and a displacement is a vector of it, which holds no
// scalar: traces over multiplets vanish, at both levels.
TEST_F(DisplacementLaws, TracesOverMultipletsVanish) {
  const std::pair<std::size_t, std::size_t> sets[] = {{0, 1}, {1, 4}, {4, 7}, {7, 8}};
  double largest = 0.0;
  for (std::size_t d = 0; d < 6; ++d)
    for (const auto& [first, end] : sets) {
      Cplx g, sigma, fixed;
      for (std::size_t l = first; l < end; ++l) {
        const ElementsAtK& e = at(d / 3, d % 3);
        g += e.mean_field[l * 9];
        sigma += e.sigma(l * 9);
        fixed += e.fixed_energies[l * 9];
        largest = std::max(largest, std::abs(e.sigma(l * 9)));
      }
      EXPECT_LT(std::abs(g), kVanishing_ry);
      EXPECT_LT(std::abs(sigma), kVanishing_ry);
      EXPECT_LT(std::abs(fixed), kVanishing_ry);
    }
  EXPECT_GT(largest, 1e-3);
}

// Both atoms can be displaced along x, y and z. Rotations of the crystal turn these directions into
// one another, and inversion exchanges the atoms. The norm of the matrix between two multiplets is
// therefore equal for all six displacements.
TEST_F(DisplacementLaws, RotationsTurnDisplacements) {
  const std::pair<std::size_t, std::size_t> sets[] = {{0, 1}, {1, 4}, {4, 7}, {7, 8}};
  for (const auto& bra : sets)
    for (const auto& ket : sets) {
      std::vector<double> g(6), sigma(6);
      for (std::size_t d = 0; d < 6; ++d)
        for (std::size_t l = bra.first; l < bra.second; ++l)
          for (std::size_t m = ket.first; m < ket.second; ++m) {
            g[d] += std::norm(at(d / 3, d % 3).mean_field[l * 8 + m]);
            sigma[d] += std::norm(at(d / 3, d % 3).sigma(l * 8 + m));
          }
      for (std::size_t d = 1; d < 6; ++d) {
        EXPECT_NEAR(std::sqrt(g[d]), std::sqrt(g[0]), kVanishing_ry);
        EXPECT_NEAR(std::sqrt(sigma[d]), std::sqrt(sigma[0]), kVanishing_ry);
      }
    }
}

// A rigid shift of GaAs by ±h gives the sum over both atoms, also between different states, where
// it does not vanish at fixed W. 1e-5 eV/Bohr: h² of 0.0025 Bohr with all bands gives 4e-6.
TEST(RigidShift, GivesTheAcousticSumBetweenDifferentStates) {
  constexpr double kStep_bohr = 0.0025;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const Deck deck = parse_deck(
      "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 5.0\nbands = 59\n[epsilon]\n"
      "cutoff_ry = 3.0\n[sigma]\nband_max = 5\npole_half_width_ev = 0\nsx_cut = 1e6\n"
      "[perturbation]\ndirections = [\"z\"]\n",
      {}, "test", ".");
  const Calculation run = run_calculation(deck, *kernels, std::int64_t{1} << 30, silent);
  std::vector<DisplacedPotentials> shifted{{}};
  for (const double sign : {1.0, -1.0}) {
    PotentialElements moved = empirical_potential(deck.mean_field.crystal);
    const Crystal& crystal = run.field.crystal();
    for (auto& [g, value] : moved) {
      double g_z = 0.0;
      for (std::size_t j = 0; j < 3; ++j) g_z += g[j] * crystal.bvec[j][2];
      value *= std::polar(1.0, -sign * kStep_bohr * crystal.blat_per_bohr * g_z);
    }
    (sign > 0.0 ? shifted[0].forth : shifted[0].back).local = moved;
  }
  const CoulombInteraction coulomb(run.field.crystal(), run.field.waves.k_grid, deck.coulomb);
  SigmaOptions options = run.plan.sigma;
  options.slope = false;
  const std::size_t n = 5;
  std::vector<double> energies_ry;
  for (int band = 0; band < 5; ++band) energies_ry.push_back(run.field.waves.energy(0, 0, band));
  const auto difference =
      finite_differences(run.field, run.epsilon, options, {shifted, energies_ry, kStep_bohr},
                         {coulomb, *kernels, silent})[0];
  double off_diagonal = 0.0;
  for (std::size_t l = 0; l < n; ++l)
    for (std::size_t m = 0; m < n; ++m) {
      const std::size_t i = l * n + m;
      const Cplx sum = run.displacements->at[0][0].sigma(i) + run.displacements->at[1][0].sigma(i);
      const Cplx mean = 0.5 * (difference[l * n * n + i] + difference[m * n * n + i]);
      EXPECT_LT(std::abs(sum - mean) * kRydberg_ev, 1e-5) << l << " " << m;
      if (l != m) off_diagonal = std::max(off_diagonal, std::abs(sum) * kRydberg_ev);
    }
  EXPECT_GT(off_diagonal, 0.01);
}

}  // namespace
}  // namespace quasi::gw
