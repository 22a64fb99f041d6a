// Displacements with a wave vector: a supercell at Γ is the oracle, and laws hold on the grid.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/folded_cell.hpp"
#include "workers/gw/model/form_factor_curve.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/gw/solver/perturbation/finite_displacements/wave_difference.hpp"
#include "workers/gw/solver/perturbation/state_coupling.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

const Vec3 kDirection{0.6, 0.0, 0.8};

SigmaOptions smooth_options(int bands, int band_max) {
  SigmaOptions options{.bands = bands,
                       .bare_cutoff_ry = 5.0,
                       .screened_cutoff_ry = 3.0,
                       .band_min = 1,
                       .band_max = band_max};
  options.rules = {.half_width_ry = 0.0, .max_ratio = 1e300, .screened_exchange_cut = 1e300};
  return options;
}

/// Returns the crystal above with spin–orbit coupling, which differs between the kinds of atoms.
EmpiricalCrystal chain_of_coupled_cells() {
  EmpiricalCrystal crystal = test::chain_of_cells();
  crystal.wavefunction_cutoff_ry = 4.0;
  crystal.spin_orbit_ry_bohr2 = {0.0125, 0.0223};
  crystal.bands = 22;
  return crystal;
}

/// A primitive cell on its grid, and the supercell that holds its states at Γ.
struct CellAndSupercell {
  explicit CellAndSupercell(const EmpiricalCrystal& of = test::chain_of_cells()) : crystal(of) {}

  EmpiricalCrystal crystal;
  SmallSilicon cell{crystal};
  int n_bands = band_count_without_split(cell.field.waves, crystal.bands - crystal.n_spinor(),
                                         cell.field.n_occupied + 1, "bands");
  std::vector<IVec3> sphere;
  std::vector<test::FoldedState> states = test::states_of_the_zone(
      {.cell = cell.field, .waves = cell.field.waves, .zone = cell.field.zone, .n_bands = n_bands},
      &sphere);
  MeanField folded = test::folded_supercell(cell, crystal, n_bands);
  CoulombInteraction coulomb{folded.crystal(), folded.waves.k_grid, {}};

  EmpiricalCrystal supercell() const {
    EmpiricalCrystal large = crystal;
    large.repeats = crystal.k_grid;
    return large;
  }
  /// Returns the position of a state of the cell in the list of the supercell.
  std::size_t position(const Vec3& k, int band) const {
    for (std::size_t i = 0; i < states.size(); ++i) {
      IVec3 whole{};
      if (states[i].band == band && nearest_lattice_point(states[i].k - k, &whole, 1e-9)) return i;
    }
    ADD_FAILURE() << "no state " << k[0] << ' ' << band;
    return 0;
  }
  std::vector<DielectricMatrix> screening(const MeanField& field, const CoulombInteraction& v,
                                          int bands, const std::vector<Cplx>& frequencies) {
    SilentProgress silent;
    std::vector<DielectricMatrix> made;
    for (const Vec3& q : screening_points(field))
      made.push_back(dielectric_matrix(
          field, q, {.epsilon_cutoff_ry = 3.0, .bands = bands, .frequencies_ry = frequencies}, v,
          *cell.kernels, silent));
    return made;
  }
};

/// Compares ∂V and ∂Σ of a displacement with wave vector p in the cell with their values in
/// the supercell. These are Σ_R e^{ip·R} over the displacements of the images of the atom.
void compare(CellAndSupercell& both, SigmaOptions options, const std::vector<Cplx>& frequencies,
             double limit_ry) {
  SilentProgress silent;
  const int n_cells = both.crystal.k_grid[0], atom = 1;
  const double energy_ry = 0.21;
  options.bands = both.n_bands;
  for (int ik = 0; ik < both.cell.field.waves.n_k(); ++ik) options.kpoints.push_back(ik);
  const auto in_cell =
      both.screening(both.cell.field, both.cell.coulomb, both.n_bands, frequencies);
  const auto in_supercell =
      both.screening(both.folded, both.coulomb, both.folded.waves.n_bands, frequencies);
  SigmaOptions of_supercell = options;
  of_supercell.bands = both.folded.waves.n_bands;
  of_supercell.band_max = of_supercell.bands;
  of_supercell.kpoints = {0};
  std::vector<Perturbation> images;
  for (int cell = 0; cell < n_cells; ++cell)
    images.push_back(atom_displacement(both.supercell(), both.folded.crystal(), 2 * cell + atom,
                                       kDirection, {.p = {}, .all_lengths = true}));
  const auto of_images = sigma_derivatives(both.folded, in_supercell, of_supercell, images,
                                           {energy_ry}, {both.coulomb, *both.cell.kernels, silent});
  double largest = 0.0, largest_g = 0.0;
  for (int turn = 1; turn < n_cells; ++turn) {
    const Vec3 p{static_cast<double>(turn) / n_cells, 0.0, 0.0};
    const auto found =
        sigma_derivatives(both.cell.field, in_cell, options,
                          {atom_displacement(both.crystal, both.cell.field.crystal(), atom,
                                             kDirection, {.p = p, .all_lengths = true})},
                          {energy_ry}, {both.cell.coulomb, *both.cell.kernels, silent})[0];
    for (const SigmaDerivativeAtK& at : found) {
      const Vec3 k = both.cell.field.waves.k[static_cast<std::size_t>(at.k_index)];
      for (std::int64_t l = 0; l < at.n; ++l)
        for (std::int64_t m = 0; m < at.n; ++m) {
          const auto bra = static_cast<std::int64_t>(both.position(k + p, static_cast<int>(l))),
                     ket = static_cast<std::int64_t>(both.position(k, static_cast<int>(m)));
          Cplx g, sigma;
          for (int cell = 0; cell < n_cells; ++cell) {
            const SigmaDerivativeAtK& image = of_images[static_cast<std::size_t>(cell)][0];
            const Cplx phase = std::polar(1.0, 2.0 * kPi * turn * cell / n_cells);
            g += phase * image.mean_field[static_cast<std::size_t>(bra * image.n + ket)];
            sigma += phase * image.at(0, bra, ket);
          }
          const Cplx own = at.mean_field[static_cast<std::size_t>(l * at.n + m)];
          EXPECT_LT(std::abs(own - g), 1e-12) << turn << ' ' << l << ' ' << m << own << g;
          EXPECT_LT(std::abs(at.at(0, l, m) - sigma), limit_ry)
              << turn << ' ' << at.k_index << ' ' << l << ' ' << m << at.at(0, l, m) << sigma;
          largest = std::max(largest, std::abs(sigma));
          largest_g = std::max(largest_g, std::abs(g));
        }
    }
  }
  EXPECT_GT(largest, 0.01);
  EXPECT_GT(largest_g, 0.05);
}

// Hybertsen–Louie and static COHSEX. 1e-12 Ry/Bohr: rounding of 1e4 terms.
TEST(WaveVectors, EqualASupercellAtGamma) {
  CellAndSupercell both;
  SigmaOptions options = smooth_options(both.n_bands, 6);
  compare(both, options, {Cplx{}}, 1e-12);
  options.method = SigmaMethod::kCohsex;
  compare(both, options, {Cplx{}}, 1e-12);
}

// Spinors obey the same law. Their spin–orbit term moves with its atom. Rounding of 1e4 terms
// stays below 1e-12 Ry/Bohr.
TEST(WaveVectors, SpinorsEqualASupercellAtGamma) {
  CellAndSupercell both(chain_of_coupled_cells());
  compare(both, smooth_options(both.n_bands, 12), {Cplx{}}, 1e-12);
}

// Contour deformation at an energy among the empty bands, where residues add to the integral.
TEST(WaveVectors, EqualASupercellAtFullFrequency) {
  CellAndSupercell both;
  SigmaOptions options = smooth_options(both.n_bands, 6);
  options.method = SigmaMethod::kContour;
  options.contour.imaginary_ry = imaginary_grid(6, 2.0);
  for (int i = 0; i <= 20; ++i) options.contour.real_ry.push_back(1.0 * i / kRydberg_ev);
  compare(both, options, options.contour.frequencies_ry(0.1 / kRydberg_ev, 1e-4 / kRydberg_ev),
          1e-12);
}

/// Compares finite displacements with the first order at the first k of GaAs on a grid, for two
/// steps. The deviation falls as h², and the combination of both without h² is below `limit_ry`.
void compare_with_finite_waves(const EmpiricalCrystal& crystal, const Vec3& p, SigmaOptions options,
                               double limit_ry) {
  SmallSilicon cell(crystal);
  const std::vector<DielectricMatrix> epsilon = cell.screening(cell.field);
  options.bands = band_count_without_split(cell.field.waves, crystal.bands - 1,
                                           cell.field.n_occupied + 1, "bands");
  const bool by_energy = options.method != SigmaMethod::kCohsex;
  options.kpoints = {cell.field.waves.n_k() - 1};
  const std::vector<double> energies_ry{0.21, 0.4};
  const std::vector<Perturbation> waves{
      atom_displacement(crystal, cell.field.crystal(), 1, kDirection,
                        {.p = p, .all_lengths = true}),
      atom_displacement(crystal, cell.field.crystal(), 0, {0.0, 1.0, 0.0},
                        {.p = p, .all_lengths = true})};
  SilentProgress silent;
  const DeviceContext context{cell.coulomb, *cell.kernels, silent};
  const auto exact = sigma_derivatives(cell.field, epsilon, options, waves, energies_ry, context);
  std::vector<std::vector<Cplx>> found[2];
  for (const int halved : {0, 1})
    found[halved] = wave_differences(cell.field, epsilon, options,
                                     {waves, energies_ry, halved == 0 ? 0.004 : 0.002}, context);
  double largest = 0.0, whole = 0.0, half = 0.0, combined = 0.0;
  for (std::size_t d = 0; d < 2; ++d) {
    const SigmaDerivativeAtK& at = exact[d][0];
    ASSERT_EQ(found[0][d].size(), static_cast<std::size_t>(at.n * at.n) * (by_energy ? 2 : 1));
    for (std::size_t e = 0; e < (by_energy ? 2u : 1u); ++e)
      for (std::int64_t l = 0; l < at.n; ++l)
        for (std::int64_t m = 0; m < at.n; ++m) {
          const auto i = (e * static_cast<std::size_t>(at.n) + static_cast<std::size_t>(l)) *
                             static_cast<std::size_t>(at.n) +
                         static_cast<std::size_t>(m);
          const Cplx sigma = at.at(e, l, m), a = found[0][d][i], b = found[1][d][i];
          largest = std::max(largest, std::abs(sigma));
          whole = std::max(whole, std::abs(a - sigma));
          half = std::max(half, std::abs(b - sigma));
          combined = std::max(combined, std::abs((4.0 * b - a) / 3.0 - sigma));
        }
  }
  EXPECT_GT(largest, 0.01);
  EXPECT_LT(whole, 1e-3 * largest);
  EXPECT_NEAR(whole / half, 4.0, 0.05);
  EXPECT_LT(combined, limit_ry);
}

// The chains have three points, two points and one point. With two or one the waves of p and −p
// are the same. The limit of 2e-8 Ry/Bohr leaves room for h⁴ near poles and for rounding over h.
TEST(WaveVectors, EqualFiniteDisplacements) {
  const SigmaOptions options = smooth_options(13, 6);
  EmpiricalCrystal crystal = test::chain_of_cells();
  compare_with_finite_waves(crystal, {1.0 / 3.0, 0.0, 0.0}, options, 2e-8);
  SigmaOptions static_options = options;
  static_options.method = SigmaMethod::kCohsex;
  compare_with_finite_waves(crystal, {2.0 / 3.0, 0.0, 0.0}, static_options, 2e-8);
  crystal.k_grid = {2, 1, 2};
  compare_with_finite_waves(crystal, {0.5, 0.0, 0.5}, options, 2e-8);
  crystal.k_grid = {2, 1, 1};
  compare_with_finite_waves(crystal, {}, options, 2e-8);
}

// States of two components obey the same law.
TEST(WaveVectors, SpinorsEqualFiniteDisplacements) {
  compare_with_finite_waves(chain_of_coupled_cells(), {1.0 / 3.0, 0.0, 0.0}, smooth_options(13, 10),
                            2e-8);
}

// The curve passes through the table and is monotone between its points. Values between them are
// those of an independent program for the same interpolant: 1e-14 Ry.
TEST(FormFactorCurve, IsTheMonotoneCubicThroughTheTable) {
  const FormFactors& silicon = form_factors("silicon");
  const FormFactorCurve curve(silicon, true);
  const double shells[] = {3.0, 4.0, 8.0, 11.0};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(curve.at(shells[i]), silicon.symmetric_ry[i]);
  EXPECT_NEAR(curve.at(0.0), -0.610791645761772, 1e-14);
  EXPECT_NEAR(curve.at(1.0), -0.473018899826050, 1e-14);
  EXPECT_NEAR(curve.at(3.5), -0.097730846362699, 1e-14);
  EXPECT_NEAR(curve.at(6.0), 0.039577755783112, 1e-14);
  EXPECT_NEAR(curve.at(9.5), 0.066608492578879, 1e-14);
  EXPECT_NEAR(curve.at(11.5), 0.035412858395975, 1e-14);
  EXPECT_EQ(curve.at(12.5), 0.0);
  const FormFactors& gaas = form_factors("gaas");
  EXPECT_NEAR(FormFactorCurve(gaas, true).at(6.0), -0.009411532282136, 1e-14);
  EXPECT_NEAR(FormFactorCurve(gaas, false).at(3.5), -0.035993441771005, 1e-14);
}

// A displacement with the period of the lattice has no elements but those of the lattice, so that
// both rules for lengths agree in a primitive cell, bit by bit.
TEST(FormFactorCurve, ChangesNothingAtQZeroOfAPrimitiveCell) {
  const SmallSilicon silicon;
  const auto matrix = [&](bool all_lengths) {
    const std::vector<IVec3>& g = silicon.field.waves.waves[0].g;
    return atom_displacement(SmallSilicon::small_crystal(), silicon.field.crystal(), 1, kDirection,
                             {.p = {}, .all_lengths = all_lengths})
        .potential({}, g, g);
  };
  EXPECT_EQ(matrix(false), matrix(true));
}

}  // namespace
}  // namespace quasi::gw
