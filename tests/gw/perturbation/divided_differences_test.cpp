#include "workers/gw/solver/perturbation/divided_differences.hpp"

#include <gtest/gtest.h>

#include "tests/gw/kernels/random_problem.hpp"
#include "tests/oracle/gw/sigma_derivative.hpp"
#include "workers/gw/physics/pole_difference.hpp"

namespace quasi::gw {
namespace {

using test::random_complex;

constexpr std::int64_t kOuter = 3, kPlaneWaves = 9;
// E lies in the gap. The factors of both kinds of states have no pole then, and no rule near a pole
// is in force.
constexpr double kGapEnergy_ry = 0.31;
constexpr PoleRules kNoRules{
    .half_width_ry = 0.0, .max_ratio = 1e300, .screened_exchange_cut = 1e300};

/// Two sides of a perturbation: some states have one energy on both sides, and one pair differs by
/// less than kCloseEnergies_ry.
struct RandomSides {
  CoupledProducts products;
  std::vector<Cplx> left, right;
  std::vector<Coupling> couplings;

  RandomSides() {
    products.bra = {{-0.8, -0.5, 0.1, 0.9, 1.7, 2.2}, {1, 1, 1, 0, 0, 0}};
    products.ket = {{-0.8, -0.4995, 0.2, 0.9, 0.9, 1.4, 2.2}, {1, 1, 1, 0, 0, 0, 0}};
    const std::int64_t n_bra = products.bra.size(), n_ket = products.ket.size();
    left = random_complex(static_cast<std::size_t>(kOuter * n_bra * kPlaneWaves), 11);
    right = random_complex(static_cast<std::size_t>(kOuter * n_ket * kPlaneWaves), 12);
    products.left = view<const Cplx>(left, kOuter, n_bra, kPlaneWaves);
    products.right = view<const Cplx>(right, kOuter, n_ket, kPlaneWaves);
    for (const std::uint32_t seed : {21U, 22U})
      couplings.push_back({random_complex(static_cast<std::size_t>(n_bra * n_ket), seed)});
  }
  static oracle::gw::Side side(const CoupledBands& bands, View<const Cplx, 3> products,
                               std::int64_t outer) {
    oracle::gw::Side s{bands.energy_ry, bands.occupation, {}};
    for (std::int64_t n = 0; n < bands.size(); ++n)
      for (std::int64_t g = 0; g < kPlaneWaves; ++g) s.products.push_back(products(outer, n, g));
    return s;
  }
  std::vector<DerivativeSums> empty_sums(std::size_t n_energies) const {
    const auto size = static_cast<std::size_t>(kOuter * kOuter);
    return std::vector<DerivativeSums>(
        couplings.size(), {std::vector<Cplx>(size * n_energies),
                           std::vector<Cplx>(size * n_energies), std::vector<Cplx>(size)});
  }
};

// Every branch of the sum agrees with the literal sum over pairs in long double: quotients, close
// pairs, and pairs of one energy. 1e-11 of the largest element: 3,000 terms of either sign.
TEST(DividedDifferences, AgreeWithTheLiteralSum) {
  const RandomSides sides;
  const test::RandomPoleModel model(kPlaneWaves, test::Symmetry::kNone, 5);
  oracle::gw::PoleModel literal = model.oracle;
  for (std::size_t i = 0; i < literal.pole_ry.size(); ++i) {
    if (literal.pole_ry[i] == 0.0) literal.i_minus_epsinv[i] = 0.0;  // skipped elements
    literal.pole_ry[i] = model.pole_ry[i];
  }
  const std::vector<double> energies{kGapEnergy_ry, kGapEnergy_ry + 0.2};
  std::vector<DerivativeSums> sums = sides.empty_sums(energies.size());
  const PlasmonPoleView view = model.view();
  add_correlation_derivative(view, kNoRules, sides.products, sides.couplings, {energies, 0.7},
                             sums);
  for (std::size_t p = 0; p < sums.size(); ++p)
    for (std::size_t e = 0; e < energies.size(); ++e)
      for (std::int64_t l = 0; l < kOuter; ++l)
        for (std::int64_t m = 0; m < kOuter; ++m) {
          const Cplx expected =
              0.7 * oracle::gw::sigma_derivative(
                        literal, RandomSides::side(sides.products.bra, sides.products.left, l),
                        RandomSides::side(sides.products.ket, sides.products.right, m),
                        sides.couplings[p].elements, energies[e]);
          const auto i =
              (e * kOuter + static_cast<std::size_t>(l)) * kOuter + static_cast<std::size_t>(m);
          EXPECT_LT(std::abs(sums[p].correlation[i] - expected), 1e-11 * std::abs(expected) + 1e-9)
              << p << ' ' << e << ' ' << l << ' ' << m;
        }
}

// Equation 5 leaves out the pairs of one multiplet and no others: with the elements V of such
// pairs set to 0 both forms are equal, to the last bits of other sums.
TEST(DividedDifferences, FixedEnergiesLeaveOutMultipletsAlone) {
  RandomSides sides;
  const test::RandomPoleModel model(kPlaneWaves, test::Symmetry::kNone, 6);
  const PlasmonPoleView view = model.view();
  const std::vector<double> energies{kGapEnergy_ry};
  std::vector<DerivativeSums> with = sides.empty_sums(1), without = sides.empty_sums(1);
  add_correlation_derivative(view, kNoRules, sides.products, sides.couplings, {energies, 1.0},
                             with);
  for (Coupling& coupling : sides.couplings)
    for (std::size_t i = 0; i < sides.products.bra.energy_ry.size(); ++i)
      for (std::size_t j = 0; j < sides.products.ket.energy_ry.size(); ++j)
        if (sides.products.bra.energy_ry[i] == sides.products.ket.energy_ry[j])
          coupling.elements[i * sides.products.ket.energy_ry.size() + j] = 0.0;
  add_correlation_derivative(view, kNoRules, sides.products, sides.couplings, {energies, 1.0},
                             without);
  double largest = 0.0;
  for (std::size_t i = 0; i < with[0].correlation.size(); ++i) {
    const double scale = std::abs(without[0].correlation[i]) + 1.0;
    EXPECT_LT(std::abs(with[0].fixed_energies[i] - without[0].correlation[i]), 1e-11 * scale);
    EXPECT_LT(std::abs(without[0].fixed_energies[i] - without[0].correlation[i]), 1e-11 * scale);
    largest = std::max(largest, std::abs(with[0].correlation[i] - with[0].fixed_energies[i]));
  }
  EXPECT_GT(largest, 0.01);
}

// The exchange couples occupied with empty states alone.
TEST(DividedDifferences, OfTheExchange) {
  const RandomSides sides;
  const std::vector<double> coulomb{1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2};
  std::vector<DerivativeSums> sums = sides.empty_sums(1);
  add_exchange_derivative(coulomb, sides.products, sides.couplings, 0.5, sums);
  const CoupledProducts& products = sides.products;
  for (std::int64_t l = 0; l < kOuter; ++l)
    for (std::int64_t m = 0; m < kOuter; ++m) {
      Cplx expected;
      for (std::int64_t i = 0; i < products.bra.size(); ++i)
        for (std::int64_t j = 0; j < products.ket.size(); ++j) {
          const double df = products.ket.occupation[static_cast<std::size_t>(j)] -
                            products.bra.occupation[static_cast<std::size_t>(i)];
          const double de = products.ket.energy_ry[static_cast<std::size_t>(j)] -
                            products.bra.energy_ry[static_cast<std::size_t>(i)];
          if (df == 0.0) continue;
          for (std::int64_t g = 0; g < kPlaneWaves; ++g)
            expected -=
                0.5 * df / de * coulomb[static_cast<std::size_t>(g)] *
                sides.couplings[1].elements[static_cast<std::size_t>(i * products.ket.size() + j)] *
                products.left(l, i, g) * std::conj(products.right(m, j, g));
        }
      EXPECT_LT(std::abs(sums[1].exchange[static_cast<std::size_t>(l * kOuter + m)] - expected),
                1e-12 * (1.0 + std::abs(expected)));
    }
}

// Both sides of kCloseEnergies_ry agree: the closed form has no jump against the quotient.
TEST(DividedDifferences, CloseEnergiesAreContinuous) {
  for (const double occupation : {1.0, 0.0})
    for (const double pole_ry : {0.4, 1.1, 7.0}) {
      const double a_ry = occupation == 1.0 ? -0.3 : 1.2, gap_ry = 1.2 * kCloseEnergies_ry;
      const auto at = [&](double energy_ry) {
        return pole_quotient(kGapEnergy_ry - energy_ry, pole_ry, occupation, 0.0, 1e300, 1e300);
      };
      const PoleQuotient a = at(a_ry), b = at(a_ry - gap_ry);
      // A quotient of differences loses four digits here.
      EXPECT_NEAR(pole_difference(a, b, gap_ry), (a.value() - b.value()) / gap_ry, 1e-10);
    }
}

}  // namespace
}  // namespace quasi::gw
