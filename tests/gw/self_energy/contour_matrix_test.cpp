// The full matrix Σ_lm(E) by contour deformation: laws on a small built-in crystal.

#include <gtest/gtest.h>

#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

struct ContourSilicon : test::SmallSilicon {
  SigmaOptions o = options();
  ContourSilicon() {
    o.method = SigmaMethod::kContour;
    o.slope = false;
    o.kpoints = {0};
    o.contour.imaginary_ry = imaginary_grid(12, 2.0);
    for (int i = 0; i <= 30; ++i) o.contour.real_ry.push_back(0.5 * i / kRydberg_ev);
    epsilon = screening(field, o.contour.frequencies_ry(0.1 / kRydberg_ev, 1e-4 / kRydberg_ev));
  }
};

// l = m is the diagonal sum at the same energies, residues and integral together (property 12).
TEST(ContourMatrix, DiagonalEqualsTheDiagonalSum) {
  ContourSilicon s;
  s.o.reduce_q = false;
  s.o.offsets_ry = {0.0};
  SigmaMatrixOptions at;
  at.at_states = true;
  const auto matrix = s.matrix(s.o, at);
  const auto diagonal = s.sigma(s.o);
  const auto n = static_cast<std::size_t>(s.o.band_max);
  double residues = 0.0;
  for (std::size_t l = 0; l < n; ++l) {
    EXPECT_LT(
        std::abs(matrix[0].at(l)[(n + 1) * l] - diagonal[0].sx_ry[0][l] - diagonal[0].ch_ry[0][l]),
        1e-11)
        << l;
    EXPECT_NEAR(matrix[0].x_ry[(n + 1) * l].real(), diagonal[0].x_ry[l], 1e-12);
    residues = std::max(residues, std::abs(diagonal[0].sx_ry[0][l]));
  }
  EXPECT_GT(residues, 1e-2) << "no residue was tested";
}

// In the gap no residue is left and Σ_lm is Hermitian; below the valence bands it is not: states
// decay there.
TEST(ContourMatrix, HermitianInTheGap) {
  ContourSilicon s;
  s.o.kpoints = {1};
  SigmaMatrixOptions at;
  at.energies_ry = {midgap_ry(s.field, 0), s.field.waves.energy(0, 1, 0) - 0.1};
  const auto matrix = s.matrix(s.o, at);
  const auto n = static_cast<std::size_t>(s.o.band_max);
  double size = 0.0, decay = 0.0;
  for (std::size_t l = 0; l < n; ++l)
    for (std::size_t m = 0; m < n; ++m) {
      EXPECT_LT(std::abs(matrix[0].at(0)[l * n + m] - std::conj(matrix[0].at(0)[m * n + l])),
                1e-11);
      if (l != m) size = std::max(size, std::abs(matrix[0].at(0)[l * n + m]));
      decay = std::max(
          decay, std::abs(matrix[0].at(1)[l * n + m] - std::conj(matrix[0].at(1)[m * n + l])));
    }
  EXPECT_GT(size, 1e-3);
  EXPECT_GT(decay, 1e-3);
}

// Σ' = U* Σ Uᵀ under a rotation U of the multiplets, with residues.
TEST(ContourMatrix, FollowsRotationsOfMultiplets) {
  ContourSilicon s;
  SigmaMatrixOptions at;
  at.energies_ry = {s.field.waves.energy(0, 0, 0), s.field.waves.energy(0, 0, 7)};
  const auto before = s.matrix(s.o, at);
  const auto n = static_cast<std::size_t>(s.o.band_max);
  const auto u = test::rotate_multiplets(s.field, 0, s.o.band_max, 5);
  const auto after = s.matrix(s.o, at);
  double off_diagonal = 0.0;
  for (std::size_t e = 0; e < 2; ++e)
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        Cplx rotated;
        for (std::size_t a = 0; a < n; ++a)
          for (std::size_t b = 0; b < n; ++b)
            rotated += std::conj(u[i * n + a]) * before[0].at(e)[a * n + b] * u[j * n + b];
        EXPECT_LT(std::abs(after[0].at(e)[i * n + j] - rotated), 1e-11) << i << ' ' << j;
        if (i != j) off_diagonal = std::max(off_diagonal, std::abs(u[i * n + j]));
      }
  EXPECT_GT(off_diagonal, 0.1);
}

// A job with the Dyson equation. The built-in crystal has no V_xc: the matrix is what can be looked
// at.
TEST(ContourMatrix, RunsAsAJobWithItsRealAxisExtended) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const Calculation run = run_calculation(
      parse_deck("[meanfield]\nsource = \"epm\"\ncutoff_ry = 6.0\nk_grid = [2, 2, 2]\nbands = "
                 "18\n[epsilon]\ncutoff_ry = 3.0\nreal_max_ev = 2.0\n"
                 "real_step_ev = 1.0\nimaginary_points = 8\n[sigma]\nmethod = "
                 "\"contour\"\nfull_matrix = true\nmatrix_step_ev = 2.0\nmatrix_margin_ev = 6.0\n"
                 "kpoints = [[0.0, 0.0, 0.0]]\n",
                 {}, "test", "."),
      *kernels, std::int64_t{1} << 30, silent);
  ASSERT_EQ(run.matrices.size(), 1u);
  ASSERT_FALSE(run.plan.notes.empty());
  // Energies reach 6 eV beyond the states, and so must the residues.
  const double reach = run.plan.sigma.contour.real_ry.back(),
               low = run.matrices[0].energy_ry.front();
  double top = -1e300;
  for (int ik = 0; ik < run.field.waves.n_k(); ++ik)
    top = std::max(top, run.field.waves.energy(0, ik, 3));
  EXPECT_GE(reach, top - low);
}

}  // namespace
}  // namespace quasi::gw
