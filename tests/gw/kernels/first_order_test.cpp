// First orders of Σ by divided differences, and elements of local potentials, on every device. The
// truth is the literal sum over pairs of states in long double (tests/oracle/gw).

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/gw/kernels/sigma_problem.hpp"
#include "tests/oracle/gw/sigma_derivative.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/kernels/pole_sums/first_order/first_order_form.hpp"
#include "workers/gw/physics/pole_difference.hpp"

namespace {

using namespace quasi;
using gw::BandRange;
using gw::CoupledBands;
using gw::Cplx;
using test::GwSigmaKernels;
using test::random_complex;
using test::RandomPoleModel;
using test::Symmetry;

// E lies in the gap. The factors of both kinds of states have no pole then, and no rule near a pole
// is in force.
constexpr double kGapEnergy_ry = 0.31;
constexpr gw::PoleRules kNoRules{
    .half_width_ry = 0.0, .max_ratio = 1e300, .screened_exchange_cut = 1e300};

/// The result of both calls of add_first_order, [n_p][n_energies][n_l][n_m].
struct WholeSums {
  std::vector<Cplx> all, of_multiplets;
};

/// Two sides of perturbations: some states have one energy on both sides, and one pair differs by
/// less than kCloseEnergies_ry.
struct RandomSides {
  std::int64_t n_l, n_m, n_g, n_p;
  CoupledBands bra{{-0.8, -0.5, 0.1, 0.9, 1.7, 2.2}, {1, 1, 1, 0, 0, 0}};
  CoupledBands ket{{-0.8, -0.4995, 0.2, 0.9, 0.9, 1.4, 2.2}, {1, 1, 1, 0, 0, 0, 0}};
  std::vector<Cplx> left, right, coupling;  ///< coupling: [n_p][n_bra][n_ket]

  RandomSides(std::int64_t l, std::int64_t m, std::int64_t g, std::int64_t p)
      : n_l(l), n_m(m), n_g(g), n_p(p) {
    left = random_complex(static_cast<std::size_t>(n_l * bra.size() * n_g), 11);
    right = random_complex(static_cast<std::size_t>(n_m * ket.size() * n_g), 12);
    coupling = random_complex(static_cast<std::size_t>(n_p * bra.size() * ket.size()), 21);
  }
  Cplx v(std::int64_t p, std::int64_t i, std::int64_t j) const {
    return coupling[static_cast<std::size_t>((p * bra.size() + i) * ket.size() + j)];
  }
  /// Returns V_n'n of the kets in a range. If `adjoint`, it returns V*_n'n of the bras in the
  /// range.
  std::vector<Cplx> part(BandRange range, bool adjoint) const {
    std::vector<Cplx> values;
    for (std::int64_t p = 0; p < n_p; ++p)
      for (std::int64_t i = 0; i < (adjoint ? ket.size() : bra.size()); ++i)
        for (std::int64_t j = range.begin; j < range.end; ++j)
          values.push_back(adjoint ? std::conj(v(p, j, i)) : v(p, i, j));
    return values;
  }
  /// Returns these elements as a block on the device of `kernels`.
  std::unique_ptr<gw::CouplingBlock> part(gw::GwKernels& kernels, BandRange range,
                                          bool adjoint) const {
    const auto values = part(range, adjoint);
    auto block = kernels.hamiltonian().make_couplings();
    block->load({values.data(), {n_p, adjoint ? ket.size() : bra.size(), range.size()}});
    return block;
  }
  static oracle::gw::Side side(const CoupledBands& bands, const Cplx* products, std::int64_t n_g) {
    return {bands.energy_ry,
            bands.occupation,
            {products, products + static_cast<std::int64_t>(bands.energy_ry.size()) * n_g}};
  }

  /// Sums of both calls, each in two parts of bands.
  WholeSums sums(const Device& device, const RandomPoleModel& model,
                 const std::vector<double>& energies, double weight) const {
    const auto kernels = gw::make_gw_kernels(device);
    const auto poles = kernels->pole_sums().load(model.view(), kNoRules);
    const auto left_block = test::loaded_block(*kernels, {left.data(), {n_l, bra.size(), n_g}});
    const auto right_block = test::loaded_block(*kernels, {right.data(), {n_m, ket.size(), n_g}});
    const auto n_e = std::ssize(energies);
    const auto size = static_cast<std::size_t>(n_p * n_e * n_l * n_m);
    std::vector<Cplx> forth(size), back(size), closed(size), multiplets(size);
    const View<const double, 1> e{energies.data(), {n_e}};
    const auto shape = [&](std::vector<Cplx>& values, bool adjoint) {
      return View<Cplx, 4>{values.data(), {n_p, n_e, adjoint ? n_m : n_l, adjoint ? n_l : n_m}};
    };
    for (const BandRange range : {BandRange{0, 3}, BandRange{3, ket.size()}}) {
      const auto v = part(*kernels, range, false);
      poles->add_first_order({*left_block, *right_block}, {bra, ket, range, *v, weight}, {e},
                             {shape(forth, false), shape(closed, false), shape(multiplets, false)});
    }
    for (const BandRange range : {BandRange{0, 2}, BandRange{2, bra.size()}}) {
      const auto v = part(*kernels, range, true);
      poles->add_first_order({*right_block, *left_block}, {ket, bra, range, *v, weight},
                             {e, true, false}, {shape(back, true), {}, {}});
    }
    WholeSums whole{std::vector<Cplx>(size), multiplets};
    for (std::int64_t i = 0; i < n_p * n_e; ++i)
      for (std::int64_t l = 0; l < n_l; ++l)
        for (std::int64_t m = 0; m < n_m; ++m) {
          const auto at = static_cast<std::size_t>((i * n_l + l) * n_m + m),
                     adjoint = static_cast<std::size_t>((i * n_m + m) * n_l + l);
          whole.all[at] = forth[at] + std::conj(back[adjoint]) + closed[at] + multiplets[at];
        }
    return whole;
  }
};

/// The model of the oracle with the poles that the kernels see.
oracle::gw::PoleModel literal_model(const RandomPoleModel& model) {
  oracle::gw::PoleModel literal = model.oracle;
  for (std::size_t i = 0; i < literal.pole_ry.size(); ++i) {
    if (literal.pole_ry[i] == 0.0) literal.i_minus_epsinv[i] = 0.0;  // skipped elements
    literal.pole_ry[i] = model.pole_ry[i];
  }
  return literal;
}

// Every branch of the sum agrees with the literal sum over pairs: quotients, close pairs, and pairs
// of one energy. The second case has more outer states than a block of CUDA and cuts its tiles of
// plane waves. 1e-11 of the largest element: up to 2e5 terms of either sign.
TEST_P(GwSigmaKernels, FirstOrdersAgreeWithTheLiteralSum) {
  for (const RandomSides& sides : {RandomSides(3, 3, 9, 2), RandomSides(11, 9, 37, 3)}) {
    const RandomPoleModel model(static_cast<int>(sides.n_g), Symmetry::kNone, 5);
    const oracle::gw::PoleModel literal = literal_model(model);
    const std::vector<double> energies{kGapEnergy_ry, kGapEnergy_ry + 0.2};
    const WholeSums found = sides.sums(GetParam(), model, energies, 0.7);
    double largest = 0.0, deviation = 0.0;
    for (std::int64_t p = 0; p < sides.n_p; ++p)
      for (std::int64_t e = 0; e < 2; ++e)
        for (std::int64_t l = 0; l<sides.n_l; l += sides.n_l> 5 ? 5 : 1)
          for (std::int64_t m = 0; m<sides.n_m; m += sides.n_m> 5 ? 4 : 1) {
            const std::int64_t n_bra = sides.bra.size(), n_ket = sides.ket.size();
            const Cplx expected =
                0.7 *
                oracle::gw::sigma_derivative(
                    literal,
                    RandomSides::side(sides.bra, &sides.left[l * n_bra * sides.n_g], sides.n_g),
                    RandomSides::side(sides.ket, &sides.right[m * n_ket * sides.n_g], sides.n_g),
                    {&sides.coupling[p * n_bra * n_ket],
                     &sides.coupling[p * n_bra * n_ket] + n_bra * n_ket},
                    energies[static_cast<std::size_t>(e)]);
            const Cplx got =
                found.all[static_cast<std::size_t>(((p * 2 + e) * sides.n_l + l) * sides.n_m + m)];
            largest = std::max(largest, std::abs(expected));
            deviation = std::max(deviation, std::abs(got - expected));
          }
    EXPECT_LT(deviation, 1e-11 * largest) << sides.n_g;
    EXPECT_GT(largest, 1.0);
  }
}

// The sum of multiplets holds the pairs of one energy and no others: without their elements V it is
// 0, and the sum of all others stays the same.
TEST_P(GwSigmaKernels, FirstOrdersOfMultipletsStandApart) {
  RandomSides sides(3, 4, 9, 2);
  const RandomPoleModel model(9, Symmetry::kNone, 6);
  const WholeSums with = sides.sums(GetParam(), model, {kGapEnergy_ry}, 1.0);
  for (std::size_t at = 0; at < sides.coupling.size(); ++at) {
    const std::size_t n_ket = sides.ket.energy_ry.size(), n_bra = sides.bra.energy_ry.size();
    if (sides.bra.energy_ry[at / n_ket % n_bra] == sides.ket.energy_ry[at % n_ket])
      sides.coupling[at] = 0.0;
  }
  const WholeSums without = sides.sums(GetParam(), model, {kGapEnergy_ry}, 1.0);
  double largest = 0.0;
  for (std::size_t i = 0; i < with.all.size(); ++i) {
    EXPECT_LT(std::abs(with.all[i] - with.of_multiplets[i] - without.all[i]),
              1e-11 * (1.0 + std::abs(without.all[i])));
    EXPECT_EQ(without.of_multiplets[i], Cplx());
    largest = std::max(largest, std::abs(with.of_multiplets[i]));
  }
  EXPECT_GT(largest, 0.01);
}

// The exchange couples occupied with empty states alone.
TEST_P(GwSigmaKernels, FirstOrderOfTheExchange) {
  const RandomSides sides(3, 9, 41, 2);
  std::vector<double> coulomb;
  for (std::int64_t g = 0; g < sides.n_g; ++g)
    coulomb.push_back(1.0 / (1.0 + static_cast<double>(g)));
  const auto kernels = gw::make_gw_kernels(GetParam());
  const std::int64_t n_bra = sides.bra.size(), n_ket = sides.ket.size(), n_g = sides.n_g;
  const auto left = test::loaded_block(*kernels, {sides.left.data(), {sides.n_l, n_bra, n_g}}),
             right = test::loaded_block(*kernels, {sides.right.data(), {sides.n_m, n_ket, n_g}});
  std::vector<Cplx> sum(static_cast<std::size_t>(sides.n_p * sides.n_l * sides.n_m));
  for (const BandRange range : {BandRange{0, 2}, BandRange{2, n_ket}}) {
    const auto v = sides.part(*kernels, range, false);
    kernels->pole_sums().add_first_order_exchange({*left, *right}, {coulomb.data(), {n_g}},
                                                  {sides.bra, sides.ket, range, *v, 0.5},
                                                  {sum.data(), {sides.n_p, sides.n_l, sides.n_m}});
  }
  for (std::int64_t p = 0; p < sides.n_p; ++p)
    for (std::int64_t l = 0; l < sides.n_l; ++l)
      for (std::int64_t m = 0; m < sides.n_m; ++m) {
        Cplx expected;
        for (std::int64_t i = 0; i < n_bra; ++i)
          for (std::int64_t j = 0; j < n_ket; ++j) {
            const auto at_i = static_cast<std::size_t>(i), at_j = static_cast<std::size_t>(j);
            const double df = sides.ket.occupation[at_j] - sides.bra.occupation[at_i],
                         de = sides.ket.energy_ry[at_j] - sides.bra.energy_ry[at_i];
            if (df == 0.0) continue;
            for (std::int64_t g = 0; g < n_g; ++g)
              expected -=
                  0.5 * df / de * coulomb[static_cast<std::size_t>(g)] * sides.v(p, i, j) *
                  sides.left[static_cast<std::size_t>((l * n_bra + i) * n_g + g)] *
                  std::conj(sides.right[static_cast<std::size_t>((m * n_ket + j) * n_g + g)]);
          }
        const Cplx got = sum[static_cast<std::size_t>((p * sides.n_l + l) * sides.n_m + m)];
        EXPECT_LT(std::abs(got - expected), 1e-12 * (1.0 + std::abs(expected)));
      }
}

// Sums with a matrix W and with a diagonal one are the literal sums over pairs, for each energy
// with its own factors; no factor of the second energy differs from 0. 1e-11: 1e4 terms of size
// one.
TEST_P(GwSigmaKernels, FirstOrdersOfAMatrixAgreeWithTheNaiveSum) {
  const RandomSides sides(3, 9, 37, 2);
  const std::int64_t n_bra = sides.bra.size(), n_ket = sides.ket.size(), n_g = sides.n_g, n_e = 3;
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto left = test::loaded_block(*kernels, {sides.left.data(), {sides.n_l, n_bra, n_g}}),
             right = test::loaded_block(*kernels, {sides.right.data(), {sides.n_m, n_ket, n_g}});
  const auto w = random_complex(static_cast<std::size_t>(n_g * n_g), 61);
  const auto k_of = [&](std::int64_t e, std::int64_t i, std::int64_t j) {
    return e == 1 ? 0.0 : std::cos(static_cast<double>((e * n_bra + i) * n_ket + j));
  };
  for (const bool diagonal : {false, true}) {
    std::vector<Cplx> sum(static_cast<std::size_t>(sides.n_p * n_e * sides.n_l * sides.n_m));
    for (const BandRange range : {BandRange{0, 2}, BandRange{2, n_ket}}) {
      std::vector<double> factor;
      for (std::int64_t e = 0; e < n_e; ++e)
        for (std::int64_t i = 0; i < n_bra; ++i)
          for (std::int64_t j = range.begin; j < range.end; ++j) factor.push_back(k_of(e, i, j));
      gw::FirstOrderForm form{.factor = {factor.data(), {n_e, n_bra, range.size()}}};
      if (diagonal)
        form.diagonal = {w.data(), {n_g}};
      else
        form.matrix = {w.data(), {n_g, n_g}};
      const auto v = sides.part(*kernels, range, false);
      gw::add_first_order_form(GetParam(), {*left, *right}, {sides.bra, sides.ket, range, *v, 0.5},
                               form, {sum.data(), {sides.n_p, n_e, sides.n_l, sides.n_m}});
    }
    for (std::int64_t p = 0; p < sides.n_p; ++p)
      for (std::int64_t e = 0; e < n_e; ++e)
        for (std::int64_t l = 0; l < sides.n_l; ++l)
          for (std::int64_t m = 0; m < sides.n_m; m += 4) {
            Cplx expected;
            for (std::int64_t i = 0; i < n_bra; ++i)
              for (std::int64_t j = 0; j < n_ket; ++j)
                for (std::int64_t g = 0; g < n_g; ++g)
                  for (std::int64_t h = diagonal ? g : 0; h < (diagonal ? g + 1 : n_g); ++h)
                    expected +=
                        0.5 * k_of(e, i, j) * sides.v(p, i, j) *
                        sides.left[static_cast<std::size_t>((l * n_bra + i) * n_g + g)] *
                        w[static_cast<std::size_t>(diagonal ? g : g * n_g + h)] *
                        std::conj(sides.right[static_cast<std::size_t>((m * n_ket + j) * n_g + h)]);
            const Cplx got =
                sum[static_cast<std::size_t>(((p * n_e + e) * sides.n_l + l) * sides.n_m + m)];
            EXPECT_LT(std::abs(got - expected), 1e-11 * (1.0 + std::abs(expected)));
          }
  }
}

// V_n'n = Σ c*_n'(G) ∂V(ΔG) c_n(G − ΔG) of a chain of plane waves with shifts of either
// sign. 1e-12: 300 terms of size one.
TEST_P(GwSigmaKernels, ElementsOfLocalPotentialsAgreeWithTheNaiveSum) {
  const std::int64_t n_states = 7, n_pw = 300, n_p = 5;
  const std::vector<int> shifts{1, -1, 4, -4, 299};
  const auto states = random_complex(static_cast<std::size_t>(n_states * n_pw), 51),
             values = random_complex(static_cast<std::size_t>(n_p) * shifts.size(), 52);
  std::vector<std::int32_t> source;
  for (const int shift : shifts)
    for (std::int64_t g = 0; g < n_pw; ++g) {
      const std::int64_t from = g - shift;
      source.push_back(from >= 0 && from < n_pw ? static_cast<std::int32_t>(from) : -1);
    }
  const auto n_d = std::ssize(shifts);
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto loaded = kernels->hamiltonian().load_potentials({{states.data(), {n_states, n_pw}},
                                                              {source.data(), {n_d, n_pw}},
                                                              {values.data(), {n_p, n_d}}});
  const BandRange kets{2, 6};
  std::vector<Cplx> found(static_cast<std::size_t>(n_p * n_states * kets.size()));
  const auto block = kernels->hamiltonian().make_couplings();
  loaded->couple(kets, *block);
  ASSERT_EQ(block->size(), std::ssize(found));
  block->read({found.data(), {n_p, n_states, kets.size()}});
  for (std::int64_t p = 0; p < n_p; ++p)
    for (std::int64_t bra = 0; bra < n_states; ++bra)
      for (std::int64_t n = 0; n < kets.size(); ++n) {
        Cplx expected;
        for (std::int64_t d = 0; d < n_d; ++d)
          for (std::int64_t g = 0; g < n_pw; ++g)
            if (const std::int32_t from = source[static_cast<std::size_t>(d * n_pw + g)]; from >= 0)
              expected += std::conj(states[static_cast<std::size_t>(bra * n_pw + g)]) *
                          values[static_cast<std::size_t>(p * n_d + d)] *
                          states[static_cast<std::size_t>((kets.begin + n) * n_pw + from)];
        EXPECT_LT(std::abs(found[static_cast<std::size_t>((p * n_states + bra) * kets.size() + n)] -
                           expected),
                  1e-12 * static_cast<double>(n_pw));
      }
}

// Both sides of kCloseEnergies_ry agree: the closed form has no jump against the quotient.
TEST(FirstOrders, CloseEnergiesAreContinuous) {
  for (const double occupation : {1.0, 0.0})
    for (const double pole_ry : {0.4, 1.1, 7.0}) {
      const double a_ry = occupation == 1.0 ? -0.3 : 1.2, gap_ry = 1.2 * gw::kCloseEnergies_ry;
      const auto at = [&](double energy_ry) {
        return gw::pole_quotient(kGapEnergy_ry - energy_ry, pole_ry, occupation, 0.0, 1e300, 1e300);
      };
      const gw::PoleQuotient a = at(a_ry), b = at(a_ry - gap_ry);
      // A quotient of differences loses four digits here.
      EXPECT_NEAR(gw::pole_difference(a, b, gap_ry), (a.value() - b.value()) / gap_ry, 1e-10);
    }
}

}  // namespace
