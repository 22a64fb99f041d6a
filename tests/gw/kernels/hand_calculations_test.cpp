// One small case for each interface of the gw kernels, on every device. Every expected number
// follows from the formula in the comment with pencil and paper. Tolerance: a few roundings.

#include <gtest/gtest.h>

#include "tests/gw/kernels/random_problem.hpp"
#include "tests/support/every_device.hpp"

namespace {

using namespace quasi;
using gw::Cplx;

constexpr double kRounding = 1e-14;
constexpr Cplx kI{0.0, 1.0};

class GwByHand : public test::OnEveryDevice {};
QUASI_ON_EVERY_DEVICE(GwByHand);

// Left band 1 + 2i e^{ix}, right band 3. M(G) = Σ_G' c*_l(G' + G) c_n(G') gives M(0) = 3,
// M(1) = (2i)* · 3 = −6i and M(−1) = 0.
TEST_P(GwByHand, OnePairProduct) {
  const gw::FftBox box{1, 1, 5};
  const std::vector<Cplx> left{1.0, 2.0 * kI}, right{3.0, 0.0};
  const std::vector<std::int32_t> waves{0, 1}, sphere{0, 1, 4};
  const auto kernels = gw::make_gw_kernels(GetParam());
  gw::PairProductKernels& pairs = kernels->pair_products();
  const auto left_band = pairs.load_bands(box, {left.data(), {1, 2}}, {waves.data(), {2}});
  const auto right_band = pairs.load_bands(box, {right.data(), {1, 2}}, {waves.data(), {2}});
  const auto plane_waves = pairs.load_sphere(box, {sphere.data(), {3}}, {});
  const auto block = pairs.make_block();
  pairs.fill({*left_band, {0, 1}}, {*right_band, {0, 1}}, *plane_waves, *block);
  std::vector<Cplx> m(3);
  block->read({m.data(), {1, 1, 3}});
  const std::vector<Cplx> expected{3.0, -6.0 * kI, 0.0};
  for (std::size_t g = 0; g < 3; ++g) EXPECT_LE(std::abs(m[g] - expected[g]), kRounding) << g;

  // Σ_G |M|² v with v = (1, 0.5, 2): 9 + 18 = 27.
  const std::vector<double> v{1.0, 0.5, 2.0};
  double norm = 0.0;
  block->weighted_norms({v.data(), {3}}, {&norm, {1, 1}});
  EXPECT_NEAR(norm, 27.0, 27.0 * kRounding);
}

// One pair with M = 3 and weight −2 has χ = −2 · 9 = −18. With v = 1/2, ε = 1 − v χ = 10.
TEST_P(GwByHand, OnePolarizability) {
  const Cplx m{3.0, 0.0};
  const double weight = -2.0, coulomb = 0.5;
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto block = test::loaded_block(*kernels, {&m, {1, 1, 1}});
  const auto sum = kernels->polarizability().start({.n_static = 1});
  sum->add(*block, {&weight, {1, 1}});
  const auto chi = sum->finish();
  Cplx value, inverse;
  chi->read(&value);
  EXPECT_LE(std::abs(value + 18.0), 18.0 * kRounding);
  kernels->polarizability().invert_dielectric(*chi, 0, {.coulomb = {&coulomb, {1}}},
                                              {&inverse, {1, 1}});
  EXPECT_LE(std::abs(inverse - 0.1), kRounding);
}

// One element with A = 2 and ω̃ = 3, |M|² = |1 + i|² = 2, an occupied band and x = 1:
//   Σ = |M|² A/(x + ω̃) = 2 · 2/4 = 1,   dΣ/dx = −|M|² A/(x + ω̃)² = −1/4,
//   I v̄ = 2A/ω̃ = 4/3,   SX − X = −|M|² I v̄ ω̃²/(x² − ω̃²) = 2 · 4/3 · 9/8 = 3.
TEST_P(GwByHand, OnePole) {
  const Cplx m{1.0, 1.0}, strength{2.0, 0.0};
  const double pole_ry = 3.0, x = 1.0, occupation = 1.0, band_ry = 0.0;
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto block = test::loaded_block(*kernels, {&m, {1, 1, 1}});
  const auto poles = kernels->pole_sums().load({{&strength, {1, 1}}, {&pole_ry, {1, 1}}}, {});
  Cplx total, sx, slope, sigma;
  poles->add_diagonal_slope(*block, {{&x, {1, 1, 1}}, {&occupation, {1}}, 1.0},
                            {{&total, {1}}, {&sx, {1}}, {&slope, {1}}});
  EXPECT_LE(std::abs(total - 1.0), kRounding);
  EXPECT_LE(std::abs(sx - 3.0), kRounding);
  EXPECT_LE(std::abs(slope + 0.25), kRounding);
  poles->add_offdiagonal(*block, {{&x, {1}}, {&band_ry, {1}}, {&occupation, {1}}, 1.0}, {},
                         {&sigma, {1, 1, 1}});
  EXPECT_LE(std::abs(sigma - 1.0), kRounding);
}

// [[2, i], [−i, 2]] has determinant 3, inverse [[2, −i], [i, 2]]/3 and eigenvalues 1 and 3.
TEST_P(GwByHand, OneMatrix) {
  const std::vector<Cplx> matrix{2.0, kI, -kI, 2.0};
  const std::vector<Cplx> expected{2.0 / 3.0, -kI / 3.0, kI / 3.0, 2.0 / 3.0};
  const auto kernels = gw::make_gw_kernels(GetParam());
  for (const bool definite : {true, false}) {
    auto inverse = matrix;
    if (definite)
      kernels->dense().invert_positive_definite({inverse.data(), {2, 2}});
    else
      kernels->dense().invert_general({inverse.data(), {2, 2}});
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_LE(std::abs(inverse[i] - expected[i]), kRounding) << i;
  }
  std::vector<double> values(2);
  std::vector<Cplx> vectors(4);
  kernels->dense().eigen_hermitian({matrix.data(), {2, 2}}, {values.data(), {2}},
                                   {vectors.data(), {2, 2}});
  EXPECT_NEAR(values[0], 1.0, kRounding);
  EXPECT_NEAR(values[1], 3.0, 3.0 * kRounding);
}

}  // namespace
