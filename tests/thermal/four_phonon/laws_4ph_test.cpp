#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "bench/published/published_sums_4ph.hpp"
#include "tests/support/every_device.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/four_phonon/coarse_deck_4ph.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/solver/four_phonon/four_phonon_run.hpp"
#include "workers/thermal/solver/four_phonon/tile_plan_4ph.hpp"

namespace quasi::thermal {
namespace {

using test::coarse_deck;
using test::model;
using test::rates_at;

class Laws4phOnDevice : public quasi::test::OnEveryDevice {};

// At k_BT ≫ ħω every occupation is proportional to T, and the Bose factors to its square: every
// mode's rate (those that symmetry forbids are rounding).
TEST_P(Laws4phOnDevice, RatesGrowWithTheSquareOfTheTemperatureWhenHot) {
  const Deck deck = coarse_deck({{"T", "4000 8000"}});
  SilentProgress silent;
  const Modes modes = start_run(deck, deck.control.harmonic_options(), silent).modes;
  const Rates4ph rates = rates_at(deck, modes, deck.symmetry.irreducible, silent, {}, GetParam());
  double largest = 0.0;
  for (std::int64_t row = 0; row < rates.n_rows; ++row)
    largest = std::max(largest, rates.total_per_ps(0, row));
  ASSERT_GT(largest, 0.0);
  for (std::int64_t row = 0; row < rates.n_rows; ++row)
    if (rates.total_per_ps(0, row) > 1e-12 * largest) {
      EXPECT_NEAR(std::log2(rates.total_per_ps(1, row) / rates.total_per_ps(0, row)), 2.0, 0.02)
          << row;
    }
}

// Rates at two images of one star are equal, whatever basis the eigensolver chose in degenerate
// sets. 1e-9 where the numbers of the files are exactly symmetric (diamond); a hexagonal deck's are
// rounded at 1e-9 eV/Å^n, and each process is summed from one of its sides alone.
TEST_P(Laws4phOnDevice, RatesAreEqualOverAStar) {
  struct Case {
    const char* name;
    const char* mesh;
    double tolerance;
  };
  for (const Case& c : {Case{"silicon-sw", "4 4 4", 1e-9}, Case{"wurtzite-sw", "3 3 2", 2e-8}}) {
    const Deck deck = read_deck(
        model(c.name), {{"ngrid", c.mesh}, {"four_phonon", ".true."}, {"scalebroad", "1.0"}});
    SilentProgress silent;
    const Modes modes = start_run(deck, deck.control.harmonic_options(), silent).modes;
    std::vector<std::int32_t> elsewhere;
    std::mt19937 random(7);
    for (std::int64_t star = 0; star < deck.symmetry.n_irreducible(); ++star) {
      std::vector<std::int32_t> members;
      for (std::int64_t q = 0; q < modes.n_q; ++q)
        if (deck.symmetry.star_of[q] == star) members.push_back(static_cast<std::int32_t>(q));
      elsewhere.push_back(members[random() % members.size()]);
    }
    const Rates4ph here = rates_at(deck, modes, deck.symmetry.irreducible, silent, {}, GetParam());
    const Rates4ph there = rates_at(deck, modes, elsewhere, silent, {}, GetParam());
    for (int channel = 0; channel < kChannels4ph; ++channel) {
      const auto ch = static_cast<Channel4ph>(channel);
      double largest = 0.0;
      double worst = 0.0;
      for (std::int64_t row = 0; row < here.n_rows; ++row)
        largest = std::max(largest, here.rate_per_ps(ch, 0, row));
      for (std::int64_t row = 0; row < here.n_rows; ++row) {
        const double a = here.rate_per_ps(ch, 0, row);
        if (a > 1e-6 * largest)
          worst = std::max(worst, std::fabs(there.rate_per_ps(ch, 0, row) / a - 1.0));
      }
      EXPECT_GT(largest, 0.0);
      EXPECT_LT(worst, c.tolerance) << c.name << ", channel " << channel;
      std::printf("    %s channel %d: worst difference over a star %.1e\n", c.name, channel, worst);
    }
  }
}

// With a centre of inversion half of the pairs of sites are summed: the sums are those of all
// pairs, whether inversion exchanges the two atoms of the cell (silicon) or keeps them (rock salt).
// Wurtzite has no centre.
TEST_P(Laws4phOnDevice, HalfOfThePairsIsTheWholeSum) {
  for (const auto& [name, centred] :
       {std::pair{"silicon-sw", true}, {"rocksalt", true}, {"wurtzite-sw", false}}) {
    const Deck deck = read_deck(
        model(name), {{"ngrid", "3 3 3"}, {"four_phonon", ".true."}, {"scalebroad", "1.0"}});
    SilentProgress silent;
    const Modes modes = start_run(deck, deck.control.harmonic_options(), silent).modes;
    Problem4ph problem =
        make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control.four_phonon_options(),
                         *deck.fourth_order, deck.symmetry.irreducible);
    EXPECT_EQ(problem.plan.real_elements, centred) << name;
    if (!centred) continue;
    const auto kernels = make_scattering_kernels_4ph(GetParam(), 0);
    kernels->load(problem);
    const auto half = kernels->sums(0, 27);
    const int pairs = problem.plan.n_pairs;
    problem.plan = plan_contraction_4ph(deck.crystal, *deck.fourth_order);
    problem.phase = phase_table_4ph(problem.mesh, problem.plan);
    EXPECT_LE(pairs, problem.plan.n_pairs / 2 + 2) << name;
    kernels->load(problem);
    const auto whole = kernels->sums(0, 27);
    // Rounding of some thousand terms; the largest of each kind sets the scale of what symmetry
    // makes zero.
    const auto size = static_cast<std::size_t>(SumLayout4ph{1}.size());
    std::vector<double> scale(size, 0.0);
    for (std::size_t i = 0; i < whole.size(); ++i)
      scale[i % size] = std::max(scale[i % size], std::fabs(whole[i]));
    for (std::size_t i = 0; i < whole.size(); ++i)
      EXPECT_NEAR(half[i], whole[i], 1e-10 * std::fabs(whole[i]) + 1e-14 * scale[i % size])
          << name << " " << i;
    EXPECT_GT(scale[0], 0.0);
  }
}

// The phonons of a process share its visit: the same rates as where every row visits all processes
// that it takes part in.
TEST_P(Laws4phOnDevice, ExchangedRatesAreThoseOfEveryRow) {
  const Deck deck = coarse_deck({{"T", "100 300 900"}});
  SilentProgress silent;
  const Modes modes = start_run(deck, deck.control.harmonic_options(), silent).modes;
  Problem4ph problem =
      make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control.four_phonon_options(),
                       *deck.fourth_order, deck.symmetry.irreducible);
  ASSERT_FALSE(problem.star.empty());
  const auto kernels = make_scattering_kernels_4ph(GetParam(), 0);
  const auto rates = [&] {
    Rates4ph r = scattering_rates_4ph(problem, deck.control.constants(), {kernels.get()}, silent);
    average_degenerate_4ph(modes, problem.point, r);
    return r;
  };
  const Rates4ph exchanged = rates();
  problem.star.clear();
  const Rates4ph every = rates();
  // A process is visited once instead of once for each of its four phonons. Ties are visited more
  // often.
  EXPECT_LT(exchanged.evaluations, 0.31 * every.evaluations);
  // Which image of a zone-boundary point is taken decides normal or Umklapp, so only their sum is
  // compared.
  for (const auto channel :
       {Channel4ph::kRecombination, Channel4ph::kRedistribution, Channel4ph::kSplitting})
    for (std::int64_t row = 0; row < every.n_rows; ++row) {
      for (int t = 0; t < 3; ++t) {
        const double expected = every.rate_per_ps(channel, t, row);
        EXPECT_NEAR(exchanged.rate_per_ps(channel, t, row), expected, 1e-10 * expected);
        const auto at = static_cast<std::size_t>(every.at(channel, t, row));
        EXPECT_NEAR(exchanged.weighted_phase_space[at], every.weighted_phase_space[at],
                    1e-10 * every.weighted_phase_space[at]);
      }
      const auto at = static_cast<std::size_t>(every.at(channel, row));
      EXPECT_NEAR(exchanged.phase_space[at], every.phase_space[at], 1e-10 * every.phase_space[at]);
      EXPECT_NEAR(exchanged.processes[at], every.processes[at], 1e-9);
    }
}

// All total momenta of a star use one table of last pairs, turned: the same rates as with a table
// for each. As exact as the numbers of the decks' files are symmetric (RatesAreEqualOverAStar).
TEST_P(Laws4phOnDevice, StarsOfTotalMomentaShareTables) {
  struct Case {
    const char* name;
    const char* mesh;
    double tolerance;
  };
  for (const Case& c : {Case{"silicon-sw", "5 5 5", 1e-10}, Case{"wurtzite-sw", "3 3 2", 1e-8}}) {
    const Deck deck = read_deck(
        model(c.name), {{"ngrid", c.mesh}, {"four_phonon", ".true."}, {"scalebroad", "0.5"}});
    SilentProgress silent;
    const Modes modes = start_run(deck, deck.control.harmonic_options(), silent).modes;
    Problem4ph problem =
        make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control.four_phonon_options(),
                         *deck.fourth_order, deck.symmetry.irreducible);
    ASSERT_EQ(problem.totals.representative, deck.symmetry.irreducible);
    const auto kernels = make_scattering_kernels_4ph(GetParam(), 0);
    const auto rates = [&] {
      Rates4ph r = scattering_rates_4ph(problem, deck.control.constants(), {kernels.get()}, silent);
      average_degenerate_4ph(modes, problem.point, r);
      return r;
    };
    const Rates4ph shared = rates();
    problem.totals = {};
    const Rates4ph each = rates();
    double worst = 0.0;
    for (const auto channel :
         {Channel4ph::kRecombination, Channel4ph::kRedistribution, Channel4ph::kSplitting})
      for (std::int64_t row = 0; row < each.n_rows; ++row) {
        const double expected = each.rate_per_ps(channel, 0, row);
        if (expected > 0.0)
          worst = std::max(worst, std::fabs(shared.rate_per_ps(channel, 0, row) / expected - 1.0));
        const auto at = static_cast<std::size_t>(each.at(channel, row));
        EXPECT_NEAR(shared.processes[at], each.processes[at], 1e-9) << c.name;
      }
    EXPECT_LT(worst, c.tolerance) << c.name;
    std::printf("    %s: %.0f processes, rates differ by at most %.1e\n", c.name,
                each.total_processes(Channel4ph::kRedistribution), worst);
  }
}

/// The coarse deck's problem with every pair of sites, for matrix elements one by one.
struct Elements {
  Deck deck;
  Modes modes;
  Problem4ph problem;

  explicit Elements(const char* mesh)
      : deck(coarse_deck({{"ngrid", mesh}, {"symmetry", ".false."}})) {
    SilentProgress silent;
    modes = start_run(deck, deck.control.harmonic_options(), silent).modes;
    problem = make_problem_4ph(deck.crystal, modes, deck.symmetry,
                               deck.control.four_phonon_options(), *deck.fourth_order, {0});
    problem.plan = plan_contraction_4ph(deck.crystal, *deck.fourth_order);
    problem.phase = phase_table_4ph(problem.mesh, problem.plan);
  }
};

// V → 0 linearly as q → 0: a translation costs nothing in fourth order either. |V|² of the acoustic
// modes at q ∝ 1/N over all branches of the others: ratio 4.
TEST(Laws4ph, TranslationsCostNothing) {
  const auto amplitude = [](int n) {
    const Elements e((std::to_string(n) + " 1 1").c_str());
    const Tables4ph t = host_tables(e.problem);
    const std::int32_t q[4] = {1, n / 2, n / 4, 1 + n / 2 - n / 4};
    double sum = 0.0;
    for (int s0 = 0; s0 < 3; ++s0)
      for (int s1 = 0; s1 < 6; ++s1)
        for (int s2 = 0; s2 < 6; ++s2)
          for (int s3 = 0; s3 < 6; ++s3)
            sum += squared_element_by_blocks(t, Channel4ph::kRedistribution, 6 * q[0] + s0,
                                             6 * q[1] + s1, 6 * q[2] + s2, 6 * q[3] + s3);
    return sum;
  };
  EXPECT_NEAR(amplitude(64) / amplitude(128), 4.0, 0.05);
}

// |V|² is the same from whichever of its phonons a process is seen.
TEST(Laws4ph, ElementsDoNotKnowTheOrderOfTheirPhonons) {
  const Elements e("3 3 3");
  const Tables4ph t = host_tables(e.problem);
  const auto point = [&](std::int32_t mode) { return mode / 6; };
  std::mt19937 random(5);
  std::uniform_int_distribution<std::int32_t> any(0, static_cast<std::int32_t>(t.n_modes()) - 1);
  using enum Channel4ph;
  double largest = 0.0;
  for (int i = 0; i < 20; ++i) {
    const std::int32_t a = any(random), b = any(random), c = any(random), branch = any(random) % 6;
    const std::int32_t sum =
        t.mesh.add(t.mesh.add(point(a), point(b), 1), point(c), 1) * 6 + branch;
    const std::int32_t rest =
        t.mesh.add(t.mesh.add(point(a), point(b), 1), point(c), -1) * 6 + branch;
    const double three = squared_element_by_blocks(t, kRecombination, a, b, c, sum);
    const double two = squared_element_by_blocks(t, kRedistribution, a, b, c, rest);
    largest = std::max({largest, three, two});
    for (const double other : {squared_element_by_blocks(t, kRecombination, b, a, c, sum),
                               squared_element_by_blocks(t, kRecombination, c, b, a, sum),
                               squared_element_by_blocks(t, kSplitting, sum, a, b, c),
                               squared_element_by_blocks(t, kSplitting, sum, c, a, b)})
      EXPECT_NEAR(other, three, 1e-10 * three + 1e-20 * largest);
    for (const double other : {squared_element_by_blocks(t, kRedistribution, b, a, c, rest),
                               squared_element_by_blocks(t, kRedistribution, a, b, rest, c),
                               squared_element_by_blocks(t, kRedistribution, c, rest, a, b)})
      EXPECT_NEAR(other, two, 1e-10 * two + 1e-20 * largest);
  }
  EXPECT_GT(largest, 0.0);
}

// Detailed balance on the shell, and all forms of each Bose factor agree there. Tolerance: what is
// left of two terms that cancel is told from their size.
TEST(Laws4ph, DetailedBalance) {
  std::mt19937 random(4);
  std::uniform_real_distribution<double> omega(0.5, 60.0), temperature(20.0, 1200.0);
  for (int i = 0; i < 1000; ++i) {
    const double t = temperature(random);
    const auto n = [&](double w) { return bose_einstein(w, t, kCodata2018.hbar_over_kb_k_ps()); };
    const double a = omega(random), b = omega(random), c = omega(random);
    const double na = n(a), nb = n(b), nc = n(c), sum = n(a + b + c);
    EXPECT_NEAR(na * nb * nc * (1.0 + sum) / ((1.0 + na) * (1.0 + nb) * (1.0 + nc) * sum), 1.0,
                1e-11);
    const double joined = (1.0 + nb) * (1.0 + nc) * sum / na;
    EXPECT_NEAR(bose_factor_4ph(Channel4ph::kRecombination, nb, nc, sum), joined,
                1e-12 * (nb * nc + joined));
    EXPECT_NEAR(symmetric_bose_factor_4ph(na, nb, nc, sum) / joined, 1.0, 1e-11);
    const double split = na * nb * nc / sum;
    EXPECT_NEAR(bose_factor_4ph(Channel4ph::kSplitting, na, nb, nc) / split, 1.0, 1e-11);
    EXPECT_NEAR(symmetric_bose_factor_4ph(sum, na, nb, nc) / split, 1.0, 1e-11);
    if (a + b - c < 0.5) continue;
    const double rest = n(a + b - c), passed = (1.0 + nb) * nc * rest / na;
    EXPECT_NEAR(bose_factor_4ph(Channel4ph::kRedistribution, nb, nc, rest), passed,
                1e-12 * (nb * (1.0 + nc + rest) + passed));
    EXPECT_NEAR(symmetric_bose_factor_4ph(na, nb, nc, rest) / passed, 1.0, 1e-11);
  }
}

// A published strategy together with four phonons is refused by name.
TEST(Laws4ph, RefusesPublishedStrategies) {
  for (const Setting& setting :
       {Setting{"four_phonon_iteration", ".true."}, Setting{"num_sample_process_4ph", "100"}})
    try {
      coarse_deck({{"strategy", "'list-host'"}, setting});
      ADD_FAILURE() << setting.key << " was accepted";
    } catch (const InvalidInput& refused) {
      EXPECT_NE(std::string(refused.what()).find("'strategy' must be factorised"),
                std::string::npos)
          << refused.what();
    }
}

QUASI_ON_EVERY_DEVICE(Laws4phOnDevice);

}  // namespace
}  // namespace quasi::thermal
