#include "workers/mosfet/kernels/electrostatics/poisson.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/mosfet/fixtures.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {
namespace {

// Uniform charge between two gates that cover everything gives a parabola in each layer, which
// finite volumes reproduce exactly at the nodes.
TEST(Poisson, SlabBetweenGatesIsExact) {
  Structure s = make_structure(test::default_deck(33, 65));
  const double gate_v = 0.3, charge_nm3 = 0.02;
  PotentialBoundary boundary{std::vector<char>(33 * 65, 0), std::vector<double>(33 * 65, 0.0)};
  std::vector<double> density(33 * 65, 0.0);
  for (int i = 0; i < 33; ++i) {
    for (const int j : {0, 64}) boundary.fixed[i * 65 + j] = 1;
    for (int j = 0; j < 65; ++j) {
      s.doping_nm3[i * 65 + j] = 0.0;
      const double weight = j > 8 && j < 56 ? 1.0 : (j == 8 || j == 56 ? 0.5 : 0.0);
      density[i * 65 + j] = charge_nm3 * weight;
    }
  }
  std::vector<double> v(33 * 65, gate_v);
  std::vector<double> step = poisson_residual(s, boundary, v, density);
  ColumnMatrix matrix(s, boundary, std::vector<double>(33 * 65 * 65, 0.0));
  matrix.factorise();
  matrix.solve(step.data());
  // εV'' = (e/ε0) N: the field at the interface follows from Gauss' law, then the drop across oxide
  // and film.
  const double unit = kChargeOverEpsilon0_v_nm * charge_nm3;
  for (int i = 0; i < 33; ++i)
    for (int j = 0; j < 65; ++j) {
      const double z = s.z_nm[j] - 4.0;
      const double oxide = unit * 3.0 / 3.9;
      const double exact = std::fabs(z) >= 3.0
                               ? gate_v - oxide * (4.0 - std::fabs(z))
                               : gate_v - oxide * 1.0 - unit * (9.0 - z * z) / (2.0 * 11.7);
      EXPECT_NEAR(v[i * 65 + j] - step[i * 65 + j], exact, 1e-12);
    }
}

TEST(Poisson, BlockEliminationSolvesItsMatrix) {
  const Deck deck = test::default_deck(33, 17, {{"geometry.oxide_top_nm", "1.0"}});
  const Structure s = make_structure(deck);
  PotentialBoundary boundary{std::vector<char>(33 * 17, 0), std::vector<double>(33 * 17, 0.0)};
  for (int i = 10; i < 20; ++i) boundary.fixed[i * 17] = 1;
  for (int j = 0; j < 17; ++j) boundary.fixed[j] = 1;
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<double> responses(33 * 17 * 17);
  for (int i = 0; i < 33; ++i)
    for (int j = 0; j < 17; ++j)
      for (int k = 0; k <= j; ++k)
        responses[(i * 17 + j) * 17 + k] = responses[(i * 17 + k) * 17 + j] =
            (j == k) + 0.05 * uniform(random);
  ColumnMatrix matrix(s, boundary, responses);
  std::vector<double> x(33 * 17);
  for (double& value : x) value = uniform(random);
  std::vector<double> y = matrix.multiply(x);
  matrix.factorise();
  matrix.solve(y.data());
  for (std::size_t k = 0; k < x.size(); ++k) EXPECT_NEAR(y[k], x[k], 1e-11);
}

}  // namespace
}  // namespace quasi::mosfet
