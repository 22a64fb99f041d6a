// Weights of q → 0 in sums over a grid: against Madelung constants of the literature, and by laws.

#include "workers/gw/solver/screening/coulomb/punctured_grid.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "workers/gw/physics/coulomb.hpp"

namespace quasi::gw {
namespace {

constexpr Mat3 kUnit{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};

/// Energy of a Wigner crystal times r_s, in Hartree: −½ of its Madelung constant. The dual of the
/// q-grid is the lattice of the crystal.
double wigner_energy(const Mat3& bvec) {
  const PuncturedGrid grid(bvec, 1.0, {1, 1, 1});
  const double volume = std::pow(2.0 * kPi, 3) / std::abs(dot(bvec[0], cross(bvec[1], bvec[2]))),
               radius = std::cbrt(3.0 * volume / (4.0 * kPi));
  return -0.25 * grid.inverse_square(kUnit) / volume * radius;
}

// The known energies are those of [fuchs1935] in units of e²/r_s.
TEST(PuncturedGrid, GivesTheMadelungConstantsOfCubicLattices) {
  EXPECT_NEAR(wigner_energy(kUnit), -0.880059, 1e-6);
  EXPECT_NEAR(wigner_energy({{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}}), -0.895929, 1e-6);  // bcc crystal
  EXPECT_NEAR(wigner_energy({{{-1, 1, 1}, {1, -1, 1}, {1, 1, -1}}}), -0.895874, 1e-6);  // fcc
}

// q' = ε^½ q turns 8π/(qᵀεq) of one grid into 8π/q'² of the stretched one, and a finer grid scales
// the weight as V_c^−⅔.
TEST(PuncturedGrid, FollowsStretchedAndFinerGrids) {
  const Vec3 edge{0.7, 1.0, 1.3}, e{9.0, 14.0, 11.0};
  Mat3 b{}, stretched{}, epsilon{};
  for (std::size_t i = 0; i < 3; ++i) {
    b[i][i] = edge[i];
    stretched[i][i] = edge[i] * std::sqrt(e[i]);
    epsilon[i][i] = e[i];
  }
  const double weight = PuncturedGrid(stretched, 1.0, {2, 2, 2}).inverse_square(kUnit);
  EXPECT_NEAR(PuncturedGrid(b, 1.0, {2, 2, 2}).inverse_square(epsilon), weight, 1e-12 * weight);
  EXPECT_NEAR(PuncturedGrid(b, 1.0, {4, 4, 4}).inverse_square(epsilon), 4.0 * weight,
              1e-11 * weight);
}

// The weights of q_i q_j/(qᵀεq) have the trace of the identity, and are equal in a cubic lattice.
TEST(PuncturedGrid, WeightsOfDirectionsAddUpToOne) {
  const PuncturedGrid skew({{{0.7, 0.1, 0}, {0.2, 0.9, -0.1}, {0, 0.1, 1.1}}}, 1.0, {2, 3, 2});
  const Mat3 epsilon{{{9.0, 0.7, 0.0}, {0.7, 14.0, -1.1}, {0.0, -1.1, 11.0}}},
      weights = skew.directions(epsilon);
  double trace = 0.0;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) trace += epsilon[i][j] * weights[i][j];
  EXPECT_NEAR(trace, 1.0, 1e-11);  // 10⁴ points round
  const Mat3 cubic =
      PuncturedGrid({{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}}, 1.0, {3, 3, 3}).directions(kUnit);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(cubic[i][j], i == j ? 1.0 / 3.0 : 0.0, 1e-12);
}

// Σ' 1/|n| over the square lattice is 4 ζ(½) β(½) = −3.90026492 beyond its integral.
TEST(PuncturedPlane, GivesTheSumOfTheSquareLattice) {
  for (const double step : {0.3, 1.0}) {
    const PuncturedPlane plane({step, 0, 0}, {0, step, 0});
    EXPECT_NEAR(plane.weight([](double p) { return 1.0 / p; }) * step, 3.90026492, 1e-7);
  }
  // A smooth function of the plane needs the weight that every other point has.
  const PuncturedPlane skew({0.3, 0.1, 0}, {0, 0.25, 0.05});
  EXPECT_NEAR(skew.weight([](double) { return 1.0; }), 1.0, 1e-7);
}

}  // namespace
}  // namespace quasi::gw
