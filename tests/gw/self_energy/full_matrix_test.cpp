// The full matrix Σ_lm(E) on a small built-in crystal: its diagonal, its symmetries, its behaviour
// under rotations of multiplets, and the roots of the Dyson equation made of it.

#include <gtest/gtest.h>

#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/self_energy/dyson.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

// A cell with enough bands to be summed in several parts at one (k, q). Each part adds its own
// bands, and exchange is added once: the diagonal of the matrix equals the diagonal sum, which is
// cut into other parts.
TEST(FullMatrix, BlocksOfBandsAddUp) {
  EmpiricalCrystal crystal;
  crystal.cubic_cell = true;
  crystal.wavefunction_cutoff_ry = 5.0;
  crystal.bands = 150;
  SmallSilicon s(crystal);
  SigmaOptions o = s.options(20);
  ASSERT_GE(o.bands, 128) << "two parts of 64 bands";
  SigmaMatrixOptions at;
  at.at_states = true;
  const auto matrix = s.matrix(o, at);
  const auto diagonal = s.sigma(o);
  const auto n = static_cast<std::size_t>(matrix[0].n);
  for (std::size_t l = 0; l < n; ++l) {
    EXPECT_NEAR(matrix[0].x_ry[l * n + l].real(), diagonal[0].x_ry[l], 1e-10) << l;
    EXPECT_LT(
        std::abs(matrix[0].at(l)[l * n + l] - diagonal[0].sx_ry[0][l] - diagonal[0].ch_ry[0][l]),
        1e-10)
        << l;
  }
}

// A rotation U of the multiplets transforms Σ_lm(E) and the static matrix of self-consistency as
// Σ' = U* Σ Uᵀ. The static matrix is Hermitian.
TEST(FullMatrix, FollowsRotationsOfMultiplets) {
  SmallSilicon s;
  SigmaOptions o = s.options();
  o.kpoints = {0};
  SigmaMatrixOptions at;
  at.at_states = true;
  const auto before = s.matrix(o, at);
  const int n = o.band_max;
  const auto u = test::rotate_multiplets(s.field, 0, n, 5);
  const auto after = s.matrix(o, at);
  std::vector<double> outer;
  for (int l = 0; l < n; ++l) outer.push_back(s.field.waves.energy(0, 0, l));
  const auto rotated = [&](const Cplx* m, std::size_t i, std::size_t j) {
    Cplx sum;
    const auto size = static_cast<std::size_t>(n);
    for (std::size_t a = 0; a < size; ++a)
      for (std::size_t b = 0; b < size; ++b)
        sum += std::conj(u[i * size + a]) * m[a * size + b] * u[j * size + b];
    return sum;
  };
  const auto static_before = quasiparticle_potential(before[0], outer),
             static_after = quasiparticle_potential(after[0], outer);
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
    for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
      const std::size_t at_ij = i * static_cast<std::size_t>(n) + j;
      EXPECT_LT(std::abs(after[0].x_ry[at_ij] - rotated(before[0].x_ry.data(), i, j)), 1e-11);
      for (std::size_t e = 0; e < before[0].energy_ry.size(); ++e)
        EXPECT_LT(std::abs(after[0].at(e)[at_ij] - rotated(before[0].at(e), i, j)), 1e-11)
            << i << ' ' << j;
      EXPECT_LT(std::abs(static_after[at_ij] - rotated(static_before.data(), i, j)), 1e-11);
      EXPECT_LT(std::abs(static_after[at_ij] -
                         std::conj(static_after[j * static_cast<std::size_t>(n) + i])),
                1e-14);
    }
}

// Away from poles Σ(E) is Hermitian, because W is Hermitian and every factor is real. Different
// irreducible representations do not mix: of the 64 elements at Γ between Γ1, Γ25', Γ15 and Γ2',
// only those between equal ones are above 1e-9 eV.
TEST(FullMatrix, HermitianAndDiagonalInRepresentations) {
  SmallSilicon s;
  SigmaOptions o = s.options();
  o.kpoints = {0};
  const auto m = s.matrix(o, {});
  for (std::size_t e = 0; e < m[0].energy_ry.size(); ++e)
    for (std::size_t i = 0; i < 8; ++i)
      for (std::size_t j = 0; j < 8; ++j) {
        EXPECT_LT(std::abs(m[0].at(e)[8 * i + j] - std::conj(m[0].at(e)[8 * j + i])), 1e-11);
        if (i != j) {
          EXPECT_LT(std::abs(m[0].at(e)[8 * i + j]) * kRydberg_ev, 1e-9) << i << ' ' << j;
        }
      }
}

// Separable sums replace the two products in the whole sum over the zone: rational sums agree to
// 1e-7 eV, exponential sums to 1e-5 eV.
TEST(FullMatrix, SeparableSumsThroughTheZone) {
  SmallSilicon s;
  SigmaOptions o = s.options();
  o.kpoints = {0};
  const auto direct = s.matrix(o, {});
  using Method = OffDiagonalOptions::Method;
  for (const auto& [method, tolerance, bound_ev] :
       {std::tuple{Method::kRationalSums, 1e-9, 1e-7}, {Method::kExponentialSums, 1e-7, 1e-5}}) {
    SigmaMatrixOptions m;
    m.kernel.method = method;
    m.kernel.tolerance_relative = tolerance;
    const auto sums = s.matrix(o, m);
    double worst = 0.0;
    for (std::size_t i = 0; i < direct[0].correlation_ry.size(); ++i)
      worst = std::max(
          worst, std::abs(sums[0].correlation_ry[i] - direct[0].correlation_ry[i]) * kRydberg_ev);
    EXPECT_LT(worst, bound_ev);
    EXPECT_GT(worst, 0.0);
  }
}

// A root of the Dyson equation is an eigenvalue of the matrix that is computed anew at that energy.
// The grid of 0.5 eV interpolates to 1e-4 eV near the gap. In this basis of the multiplets Σ_lm is
// complex.
TEST(FullMatrix, DysonRootsSolveTheEquation) {
  SmallSilicon s;
  test::rotate_multiplets(s.field, 1, s.options().band_max, 29);
  SigmaOptions o = s.options();
  o.kpoints = {1};
  SigmaOptions all = s.options();
  const auto every = s.toy_vxc(all);
  const std::vector<std::vector<Cplx>> vxc{every[1]};
  const auto grid = s.matrix(o, {});
  const auto states = solve_dyson(s.field, grid, vxc, o);
  const auto n = static_cast<std::size_t>(o.band_max);
  ASSERT_EQ(states.size(), n);
  for (const DysonState& state : states) {
    ASSERT_TRUE(state.energy_ev.has_value()) << state.band;
    SigmaMatrixOptions there;
    there.energies_ry = {*state.energy_ev / kRydberg_ev};
    const auto exact = s.matrix(o, there);
    std::vector<Cplx> h(n * n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        const Cplx sigma =
            exact[0].x_ry[i * n + j] + 0.5 * (exact[0].correlation_ry[i * n + j] +
                                              std::conj(exact[0].correlation_ry[j * n + i]));
        h[i * n + j] =
            kRydberg_ev * sigma - vxc[0][i * n + j] +
            (i == j ? kRydberg_ev * s.field.waves.energy(0, 1, static_cast<int>(i)) : 0.0);
      }
    const HermitianEigen eigen = hermitian_eigen(h, o.band_max);
    // Far from the gap Σ has poles and steps between the points of the grid.
    EXPECT_NEAR(eigen.values[static_cast<std::size_t>(state.band - 1)], *state.energy_ev,
                state.band >= 3 && state.band <= 6 ? 2e-4 : 2e-2)
        << state.band;
    EXPECT_GT(state.own_weight, 0.5);
    EXPECT_LE(state.own_weight, 1.0 + 1e-12);
  }
}

}  // namespace
}  // namespace quasi::gw
