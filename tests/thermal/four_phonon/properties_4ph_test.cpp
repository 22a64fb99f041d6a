// Laws that hold whatever the numbers are (docs/theory/thermal.md 12.3), process by process, for
// four phonons: elements under exchange and reversal, and counting. Random crystals, and a crystal
// of ours for the folded mesh.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/published/published_sums_4ph.hpp"
#include "tests/support/every_device.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/four_phonon/random_crystal_4ph.hpp"
#include "tests/thermal/four_phonon/solved_deck_4ph.hpp"

namespace quasi::thermal {
namespace {

using enum Channel4ph;
constexpr Rules4ph kWide{.scale_broad = 0.7, .cut = 1.3, .sigma_floor_rad_ps = 0.3};
constexpr oracle::Settings4ph kWideThere{.scale_broad = 0.7, .cut = 1.3, .least_sigma = 0.3};

/// Calls visit(channel, mode0…mode3) for some tuples that conserve momentum.
template <typename Visit>
void some_tuples(const QMesh& mesh, int nb, const Visit& visit) {
  int i = 0;
  for (std::int32_t q0 = 0; q0 < mesh.size(); q0 += 5)
    for (std::int32_t q1 = 0; q1 < mesh.size(); q1 += 3)
      for (std::int32_t q2 = 0; q2 < mesh.size(); q2 += 7)
        for (const Channel4ph channel : {kRecombination, kRedistribution, kSplitting}) {
          const std::int32_t q3 =
              mesh.add(mesh.add(q0, q1, sign_second(channel)), q2, sign_third(channel));
          const auto branch = [&] { return (i = (31 * i + 17) % 9973) % nb; };
          visit(channel, q0 * nb + branch(), q1 * nb + branch(), q2 * nb + branch(),
                q3 * nb + branch());
        }
}

/// V of the oracle.
std::complex<double> element(const test::RandomCrystal4& c, Channel4ph channel,
                             std::array<std::int32_t, 4> mode) {
  const int nb = c.problem.n_branches;
  std::array<int, 4> q, s;
  for (int i = 0; i < 4; ++i) q[i] = mode[i] / nb, s[i] = mode[i] % nb;
  return oracle::matrix_element_4ph(
      c.oracle, q, s, {false, sign_second(channel) < 0, sign_third(channel) < 0, true});
}

// 6. V stays when two phonons change places with their slots, and turns into its conjugate when
// every q does into −q; and the element that the program sums is |V| of the oracle's, from
// whichever phonon the process is seen.
TEST(MatrixElement4ph, IsSymmetricAndReversible) {
  const auto c = test::random_crystal_4ph(2, {3, 4, 2}, 21, kWide);
  auto reversed = c;
  const QMesh& mesh = c.problem.mesh;
  const int nb = c.problem.n_branches;
  for (std::int32_t q = 0; q < mesh.size(); ++q) {
    reversed.oracle.e[mesh.minus(q)] = c.oracle.e[q];
    for (auto& vector : reversed.oracle.e[mesh.minus(q)])
      for (auto& x : vector) x = std::conj(x);
  }
  const auto minus = [&](std::int32_t mode) { return mesh.minus(mode / nb) * nb + mode % nb; };
  const Tables4ph t = host_tables(c.problem);
  int seen = 0;
  some_tuples(
      mesh, nb,
      [&](Channel4ph channel, std::int32_t a, std::int32_t b, std::int32_t d, std::int32_t e) {
        const std::complex<double> v = element(c, channel, {a, b, d, e});
        const double size = std::abs(v), tolerance = 1e-10 * std::max(1.0, size);
        const auto exchanged = channel == kRecombination    ? element(c, channel, {a, d, b, e})
                               : channel == kRedistribution ? element(c, channel, {a, b, e, d})
                                                            : element(c, channel, {a, e, b, d});
        EXPECT_NEAR(std::abs(v - exchanged), 0.0, tolerance);
        EXPECT_NEAR(std::abs(std::conj(v) -
                             element(reversed, channel, {minus(a), minus(b), minus(d), minus(e)})),
                    0.0, tolerance);
        const double square = size * size;
        const auto program = [&](Channel4ph from, std::int32_t i, std::int32_t j, std::int32_t k,
                                 std::int32_t l) {
          EXPECT_NEAR(squared_element_by_blocks(t, from, i, j, k, l), square,
                      1e-10 * std::max(1.0, square))
              << static_cast<int>(channel);
        };
        program(channel, a, b, d, e);
        if (channel == kRecombination) {
          program(channel, b, d, a, e);
          program(kSplitting, e, a, b, d);
          program(kSplitting, e, d, a, b);
        } else if (channel == kRedistribution) {
          program(channel, b, a, e, d);
          program(channel, d, e, b, a);
        } else {
          program(channel, a, e, b, d);
          program(kRecombination, b, d, e, a);
          program(kRecombination, e, b, d, a);
        }
        seen += size > 1.0 ? 1 : 0;
      });
  EXPECT_GT(seen, 30) << "elements of size";
}

class Properties4ph : public quasi::test::OnEveryDevice {};

// 6. Time reversed: λ and −λ scatter alike, channel by channel, normal and Umklapp, and so do their
// rows of the collision operator. (Γ alone is its own opposite on an odd mesh, so that the images
// in the zone are opposite everywhere.)
TEST_P(Properties4ph, ReversedPhononsScatterAlike) {
  for (const auto& mesh : {std::array{3, 3, 1}, std::array{5, 1, 1}}) {
    auto c = test::random_crystal_4ph(2, mesh, 5u + static_cast<unsigned>(mesh[0]), kWide);
    test::impose_time_reversal(c);
    test::take_all_points(c, false);
    const auto nq = static_cast<std::int32_t>(c.problem.mesh.size());
    const int nb = c.problem.n_branches;
    const auto kernels = make_scattering_kernels_4ph(GetParam(), 0);
    kernels->load(c.problem);
    const auto sums = kernels->sums(0, nq);
    const SumLayout4ph layout{3};
    const auto size = static_cast<std::size_t>(3 * nb * layout.size());
    double normal = 0.0, umklapp = 0.0;
    for (std::int32_t q = 0; q < nq; ++q)
      for (std::size_t i = 0; i < size; ++i) {
        const double here = sums[static_cast<std::size_t>(q) * size + i];
        EXPECT_NEAR(sums[static_cast<std::size_t>(c.problem.mesh.minus(q)) * size + i], here,
                    1e-10 * std::fabs(here))
            << q << " " << i;
        if (static_cast<int>(i) % layout.size() == layout.normal(1)) normal += here;
        if (static_cast<int>(i) % layout.size() == layout.umklapp(1)) umklapp += here;
      }
    EXPECT_GT(normal, 0.0);
    EXPECT_GT(umklapp, 0.0);
    CollisionRequest4ph request{
        .temperature = 1, .symmetric = true, .first_point = 0, .last_point = nq};
    for (std::int32_t row = 0; row < nq * nb; ++row) {
      double rate = 0.0;
      for (int channel = 0; channel < 3; ++channel) {
        const double* at = &sums[static_cast<std::size_t>((3 * row + channel) * layout.size())];
        rate += at[layout.normal(1)] + at[layout.umklapp(1)];
      }
      request.row_size.push_back(rate);
    }
    std::vector<double> out;
    for (int attempt = 0; attempt < 4 && out.empty(); ++attempt) {
      kernels->begin_collision(request);
      kernels->add_collision(0, nq);
      out = kernels->finish_collision();
      for (double& x : request.row_size) x *= 10.0;
    }
    ASSERT_FALSE(out.empty());
    std::vector<double> field(3 * c.problem.omega_rad_ps.size()), opposite(field.size());
    for (std::int32_t q = 0; q < nq; ++q)
      for (int i = 0; i < 3 * nb; ++i)
        field[static_cast<std::size_t>(q * 3 * nb + i)] =
            opposite[static_cast<std::size_t>(c.problem.mesh.minus(q) * 3 * nb + i)] =
                std::sin(q * 50 + i);
    const auto in = kernels->apply_collision(field), back = kernels->apply_collision(opposite);
    for (std::int32_t q = 0; q < nq; ++q)
      for (int i = 0; i < 3 * nb; ++i) {
        const double rate = out[static_cast<std::size_t>(q * nb + i / 3)];
        EXPECT_NEAR(back[static_cast<std::size_t>(c.problem.mesh.minus(q) * 3 * nb + i)],
                    in[static_cast<std::size_t>(q * 3 * nb + i)], 1e-10 * rate);
      }
  }
}

// 7. With U tuples in which phonons stand in every order, of which U2 have two of them the same and
// U3 all three, a list without repetitions has (U + U2)/2 entries (++ and +-) or (U + 3 U2 + 2
// U3)/6 (--); formal weights count U/2 and U/6. U is counted by the oracle, one by one.
TEST_P(Properties4ph, ListsWithoutRepetitionsHoldEveryTupleOnce) {
  long two[3] = {}, three = 0;
  for (int n_atoms = 1; n_atoms <= 3; ++n_atoms) {
    const std::array<int, 3> mesh = n_atoms == 3 ? std::array{2, 1, 2} : std::array{4, 2, 1};
    Rules4ph rules = kWide;
    std::array<std::vector<double>, 2> counts;  // formal weights, without repetitions
    oracle::Crystal4ph crystal;
    for (const bool formal : {true, false}) {
      rules.exact_weights = formal;
      auto c = test::random_crystal_4ph(n_atoms, mesh, 40u + static_cast<unsigned>(n_atoms), rules);
      test::take_all_points(c, false);
      const auto kernels = make_scattering_kernels_4ph(GetParam(), 0);
      kernels->load(c.problem);
      const auto sums = kernels->sums(0, static_cast<std::int32_t>(c.problem.mesh.size()));
      const SumLayout4ph layout{3};
      for (std::size_t i = 0; i < sums.size(); i += static_cast<std::size_t>(layout.size()))
        counts[formal ? 0 : 1].push_back(sums[i + static_cast<std::size_t>(layout.six_count())]);
      crystal = c.oracle;
      crystal.block.clear();  // nothing but the counts is wanted
    }
    const int nb = 3 * n_atoms;
    double recombinations = 0.0, splittings = 0.0;
    for (std::size_t row = 0; row < counts[0].size() / 3; ++row) {
      const auto there = oracle::four_phonon_sums(crystal, kWideThere, static_cast<int>(row) / nb,
                                                  static_cast<int>(row) % nb);
      for (std::size_t channel = 0; channel < 3; ++channel) {
        const auto& sums = there[channel];
        const double all = sums.tuples * (channel == 2 ? 6.0 : 2.0);
        two[channel] += sums.two_coincide;
        three += sums.three_coincide;
        const double listed = channel == 2 ? (all + 3.0 * static_cast<double>(sums.two_coincide) +
                                              2.0 * static_cast<double>(sums.three_coincide)) /
                                                 6.0
                                           : (all + static_cast<double>(sums.two_coincide)) / 2.0;
        EXPECT_NEAR(counts[0][3 * row + channel], 6.0 * sums.tuples, 1e-6)
            << n_atoms << " atoms, row " << row << ", channel " << channel;
        EXPECT_NEAR(counts[1][3 * row + channel], 6.0 * listed, 1e-6)
            << n_atoms << " atoms, row " << row << ", channel " << channel;
      }
      recombinations += counts[0][3 * row];
      splittings += counts[0][3 * row + 2];
    }
    // Every splitting is three recombinations, one seen from each of the phonons that it creates:
    // U/6 against 3 U/2.
    EXPECT_GT(splittings, 0.0);
    EXPECT_NEAR(recombinations, 3.0 * splittings, 1e-6);
  }
  for (const long n : two) EXPECT_GT(n, 0) << "else ties are not tried";
  EXPECT_GT(three, 0);
}

// 7. The same over the folded mesh of a crystal, where q' runs over wedges and λ and λ' change
// places.
TEST_P(Properties4ph, EverySplittingIsThreeRecombinationsSeenFromTheOtherSide) {
  SilentProgress silent;
  for (const auto& [name, mesh] :
       {std::pair{"silicon-sw", "5 5 5"}, std::pair{"wurtzite-sw", "3 3 2"}}) {
    const Deck deck = read_deck(
        test::model(name), {{"ngrid", mesh}, {"four_phonon", ".true."}, {"scalebroad", "0.3"}});
    const Modes modes = start_run(deck, deck.control.harmonic_options(), silent).modes;
    const Problem4ph problem =
        make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control.four_phonon_options(),
                         *deck.fourth_order, deck.symmetry.irreducible);
    const auto kernels = make_scattering_kernels_4ph(GetParam(), 0);
    const Rates4ph rates =
        scattering_rates_4ph(problem, deck.control.constants(), {kernels.get()}, silent);
    double recombinations = 0.0, splittings = 0.0;
    for (std::int64_t row = 0; row < rates.n_rows; ++row) {
      const double members =
          deck.symmetry.multiplicity[static_cast<std::size_t>(row / modes.n_branches)];
      recombinations +=
          members * rates.processes[static_cast<std::size_t>(rates.at(kRecombination, row))];
      splittings += members * rates.processes[static_cast<std::size_t>(rates.at(kSplitting, row))];
    }
    EXPECT_GT(splittings, 1e4) << name;
    EXPECT_NEAR(recombinations / (3.0 * splittings), 1.0, 1e-12) << name;
  }
}

QUASI_ON_EVERY_DEVICE(Properties4ph);

}  // namespace
}  // namespace quasi::thermal
