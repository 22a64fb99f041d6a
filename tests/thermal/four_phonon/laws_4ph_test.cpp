#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>

#include "bench/published/published_sums_4ph.hpp"
#include "tests/support/every_device.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/input/deck.hpp"
#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/solver/four_phonon/four_phonon_run.hpp"
#include "workers/thermal/solver/four_phonon/tile_plan_4ph.hpp"

namespace quasi::thermal {
namespace {

/// A deck of our own models, written once.
using test::model;

/// The shipped Stillinger–Weber crystal on a coarse mesh, with fourth order.
Deck coarse_deck(std::vector<Setting> more = {}) {
  std::vector<Setting> settings{
      {"ngrid", "4 4 4"}, {"four_phonon", ".true."}, {"scalebroad", "1.0"}};
  settings.insert(settings.end(), more.begin(), more.end());
  return read_deck(quasi::test::source_dir() / "examples/thermal/silicon-sw", settings);
}

class Laws4phOnDevice : public quasi::test::OnEveryDevice {};

Rates4ph rates_at(const Deck& deck, const Modes& modes, const std::vector<std::int32_t>& points,
                  Progress& progress, const std::filesystem::path& checkpoints = {},
                  const Device& device = Device{}) {
  const Problem4ph problem = make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control,
                                              *deck.fourth_order, points);
  const auto kernels = make_scattering_kernels_4ph(device, 0);
  Rates4ph rates = scattering_rates_4ph(problem, deck.control.constants(), {kernels.get()},
                                        progress, {checkpoints});
  average_degenerate_4ph(modes, points, rates);
  return rates;
}

// At k_BT ≫ ħω every occupation is proportional to T, and the Bose factors to its square: every
// mode's rate (those that symmetry forbids are rounding).
TEST_P(Laws4phOnDevice, RatesGrowWithTheSquareOfTheTemperatureWhenHot) {
  const Deck deck = coarse_deck({{"T", "4000 8000"}});
  SilentProgress silent;
  const Modes modes = start_run(deck, silent).modes;
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
    const Modes modes = start_run(deck, silent).modes;
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
    const Modes modes = start_run(deck, silent).modes;
    Problem4ph problem = make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control,
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

// λ and λ' change places: the same rates as where every row visits all that it takes part in.
TEST_P(Laws4phOnDevice, ExchangedRatesAreThoseOfEveryRow) {
  const Deck deck = coarse_deck({{"T", "100 300 900"}});
  SilentProgress silent;
  const Modes modes = start_run(deck, silent).modes;
  Problem4ph problem = make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control,
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
  EXPECT_LT(exchanged.evaluations, 0.7 * every.evaluations);
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
    const Modes modes = start_run(deck, silent).modes;
    Problem4ph problem = make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control,
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
    modes = start_run(deck, silent).modes;
    problem =
        make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control, *deck.fourth_order, {0});
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

/// Asks for a checkpoint after every tile and cancels after some.
class Interrupting : public SilentProgress {
 public:
  explicit Interrupting(int tiles) : left_(tiles) {}
  bool checkpoint_wanted() override { return true; }
  bool cancelled() const override { return left_ < 0; }
  void checkpoint_ready(const std::string&, std::int64_t step) override { last_step = step; }
  std::int64_t last_step = 0;

 protected:
  void on_report(std::string_view, std::int64_t, std::int64_t) override { --left_; }

 private:
  int left_;
};

/// Remembers what the first report said is done, and how many followed it: one a tile.
class Watching : public SilentProgress {
 public:
  std::int64_t first_done = -1;
  std::int64_t tiles = -1;

 protected:
  void on_report(std::string_view, std::int64_t done, std::int64_t) override {
    if (first_done < 0) first_done = done;
    ++tiles;
  }
};

// A run that is cancelled and resumed ends with the bits of an undisturbed one, and no finished
// tile is computed again: what a cancellation loses is the tile at work.
TEST(Laws4ph, ResumedRunHasTheSameBits) {
  const Deck deck = coarse_deck();
  SilentProgress silent;
  const Modes modes = start_run(deck, silent).modes;
  const Rates4ph whole = rates_at(deck, modes, deck.symmetry.irreducible, silent);
  const quasi::test::TemporaryDirectory directory;
  Interrupting interrupting(3);
  EXPECT_THROW(rates_at(deck, modes, deck.symmetry.irreducible, interrupting, directory.path()),
               Cancelled);
  EXPECT_EQ(interrupting.last_step, 3);
  Watching watching;
  const Rates4ph resumed =
      rates_at(deck, modes, deck.symmetry.irreducible, watching, directory.path());
  const TilePlan4ph plan =
      plan_tiles_4ph(make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control,
                                      *deck.fourth_order, deck.symmetry.irreducible));
  EXPECT_EQ(watching.first_done, plan.progress(interrupting.last_step));
  EXPECT_EQ(watching.tiles, plan.size() - interrupting.last_step);
  EXPECT_EQ(whole.normal_per_ps, resumed.normal_per_ps);
  EXPECT_EQ(whole.umklapp_per_ps, resumed.umklapp_per_ps);
  EXPECT_EQ(whole.processes, resumed.processes);
}

// That tile is at most a star of total momenta and fifteen more, 63/N³ of them, and of the work:
// stars that are small are dear, but share their tile. More than a mode and channel is, and less of
// the whole the finer the mesh and the longer the job.
TEST(Laws4ph, ATileIsASmallShareOfTheWork) {
  for (const int n : {8, 12, 16}) {
    const std::string mesh = std::to_string(n);
    const Deck deck =
        coarse_deck({{"ngrid", mesh + " " + mesh + " " + mesh}, {"scalebroad", "0.1"}});
    SilentProgress silent;
    const Modes modes = start_run(deck, silent).modes;
    const TilePlan4ph plan =
        plan_tiles_4ph(make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control,
                                        *deck.fourth_order, deck.symmetry.irreducible));
    const double largest = plan.work(0) / plan.work_before.back();
    EXPECT_LT(largest, 64.0 / (n * n * n)) << mesh;
    std::printf("    %d³: %lld tiles, the dearest %.2f %% of the work; %zu modes and channels\n", n,
                static_cast<long long>(plan.size()), 100.0 * largest,
                3 * deck.symmetry.irreducible.size() * static_cast<std::size_t>(modes.n_branches));
  }
}

/// Shares that were reported, and when: the processor time of this process, which other work on the
/// machine does not stretch.
class Recording : public SilentProgress {
 public:
  std::vector<std::pair<double, double>> at;

 protected:
  void on_report(std::string_view, std::int64_t done, std::int64_t total) override {
    at.emplace_back(static_cast<double>(done) / static_cast<double>(total),
                    static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
  }
};

// The time that is left, as anybody reckons it from the reported share (elapsed/share − elapsed),
// against what it then was, at a quarter, half and three quarters of a run: within a factor 1.35
// (tiles differ in work by three times and more, the shares' weights are those of another device).
TEST(Laws4ph, TimeLeftIsHonest) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer slows the tiles' parts by different factors: what is predicted is "
                  "the plain build's time";
#endif
  const Deck deck = coarse_deck({{"ngrid", "8 8 8"}, {"scalebroad", "0.05"}});
  SilentProgress silent;
  const Modes modes = start_run(deck, silent).modes;
  Recording recording;
  rates_at(deck, modes, deck.symmetry.irreducible, recording);
  ASSERT_GT(recording.at.size(), 20u);
  EXPECT_EQ(recording.at.front().first, 0.0);
  EXPECT_EQ(recording.at.back().first, 1.0);
  const double start = recording.at.front().second;
  const double end = recording.at.back().second;
  for (const double share : {0.25, 0.5, 0.75}) {
    const auto now = std::find_if(recording.at.begin(), recording.at.end(),
                                  [&](const auto& r) { return r.first >= share; });
    const double elapsed = now->second - start;
    const double predicted = elapsed / now->first - elapsed;
    const double ratio = predicted / (end - now->second);
    EXPECT_LT(std::fabs(std::log(ratio)), std::log(1.35))
        << "at " << now->first << " of " << end - start << " s";
    std::printf("    at %.2f: %.2f s left, predicted %.2f\n", now->first, end - now->second,
                predicted);
  }
}

// Devices take tiles by falling predicted cost and tiles are added in the plan's order: any number
// of devices, whichever of them is faster, gives the same bits.
TEST_P(Laws4phOnDevice, OneTwoAndFourDevicesGiveTheSameBits) {
  const Deck deck = coarse_deck({{"ngrid", "5 5 5"}, {"scalebroad", "0.1"}});
  SilentProgress silent;
  const Modes modes = start_run(deck, silent).modes;
  const Problem4ph problem = make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control,
                                              *deck.fourth_order, deck.symmetry.irreducible);
  Rates4ph first;
  for (const std::size_t n : {1, 2, 4}) {
    std::vector<std::unique_ptr<ScatteringKernels4ph>> kernels;
    std::vector<ScatteringKernels4ph*> devices;
    for (std::size_t i = 0; i < n; ++i) {
      kernels.push_back(make_scattering_kernels_4ph(GetParam(), 0));
      devices.push_back(kernels.back().get());
    }
    const Rates4ph rates = scattering_rates_4ph(problem, deck.control.constants(), devices, silent);
    if (n == 1) first = rates;
    EXPECT_EQ(first.normal_per_ps, rates.normal_per_ps) << n << " devices";
    EXPECT_EQ(first.umklapp_per_ps, rates.umklapp_per_ps) << n << " devices";
    EXPECT_EQ(first.phase_space, rates.phase_space) << n << " devices";
  }
}

// The plan holds every total momentum once, by falling work, and its predicted processes are those
// found: 10 % over all and 25 % for the tiles that matter (the prediction samples 64 q'' and takes
// densities over 1/256 of the range).
TEST(Laws4ph, PredictedProcessesAreThoseFound) {
  for (const char* compat : {"none", "fourphonon"}) {
    const Deck deck = coarse_deck({{"ngrid", "6 6 6"}, {"scalebroad", "0.1"}, {"compat", compat}});
    SilentProgress silent;
    const Modes modes = start_run(deck, silent).modes;
    const Problem4ph problem = make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control,
                                                *deck.fourth_order, deck.symmetry.irreducible);
    const TilePlan4ph plan = plan_tiles_4ph(problem);
    std::vector<int> seen(static_cast<std::size_t>(problem.mesh.size()));
    const auto kernels = make_scattering_kernels_4ph_cpu();
    kernels->load(problem);
    const SumLayout4ph layout{1};
    double predicted = 0.0, found = 0.0, worst = 0.0;
    for (std::int64_t place = 0; place < plan.size(); ++place) {
      if (place > 0) {
        EXPECT_LE(plan.work(place), plan.work(place - 1) * (1.0 + 1e-12));
      }
      for (std::int32_t total = plan.first_total(place); total < plan.last_total(place); ++total)
        ++seen[static_cast<std::size_t>(total)];
      const auto sums = kernels->sums(plan.first_total(place), plan.last_total(place));
      double here = 0.0;
      for (std::size_t r = 0; r < sums.size(); r += static_cast<std::size_t>(layout.size()))
        here += sums[r + layout.evaluations()];
      predicted += plan.processes[static_cast<std::size_t>(place)];
      found += here;
      worst =
          std::max(worst, std::fabs(plan.processes[static_cast<std::size_t>(place)] / here - 1.0));
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), problem.mesh.size());
    EXPECT_NEAR(predicted / found, 1.0, 0.15) << compat;
    EXPECT_LT(worst, 0.25) << compat;
    std::printf("    %s: %.4g processes, predicted over found %.3f, worst tile off by %.3f\n",
                compat, found, predicted / found, worst);
  }
}

// What is not available is refused by name, not left out in silence.
TEST(Laws4ph, RefusesWhatItCannotDo) {
  for (const Setting& setting :
       {Setting{"four_phonon_iteration", ".true."}, Setting{"num_sample_process_4ph", "100"}}) {
    const Deck deck = coarse_deck({{"strategy", "'list-host'"}, setting});
    EXPECT_THROW(require_supported_4ph(deck.control), InvalidInput) << setting.key;
  }
}

QUASI_ON_EVERY_DEVICE(Laws4phOnDevice);

}  // namespace
}  // namespace quasi::thermal
