#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>
#include <utility>

#include "tests/support/every_device.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/four_phonon/coarse_deck_4ph.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/solver/four_phonon/four_phonon_start.hpp"
#include "workers/thermal/solver/four_phonon/tile_plan_4ph.hpp"

namespace quasi::thermal {
namespace {

using test::coarse_deck;
using test::rates_at;

class Tiles4phOnDevice : public quasi::test::OnEveryDevice {};

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

/// Records the share that the first report calls done and the number of later reports, one a tile.
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

// A run that is cancelled and resumed ends with the bits of an undisturbed one. No finished tile is
// computed again: a cancellation loses the tile at work alone.
TEST(Tiles4ph, ResumedRunHasTheSameBits) {
  const Deck deck = coarse_deck();
  SilentProgress silent;
  const Modes modes = start_run(deck, deck.control.harmonic_options(), silent).modes;
  const Rates4ph whole = rates_at(deck, modes, deck.symmetry.irreducible, silent);
  const quasi::test::TemporaryDirectory directory;
  Interrupting interrupting(3);
  EXPECT_THROW(rates_at(deck, modes, deck.symmetry.irreducible, interrupting, directory.path()),
               Cancelled);
  EXPECT_EQ(interrupting.last_step, 3);
  Watching watching;
  const Rates4ph resumed =
      rates_at(deck, modes, deck.symmetry.irreducible, watching, directory.path());
  const TilePlan4ph plan = plan_tiles_4ph(
      make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control.four_phonon_options(),
                       *deck.fourth_order, deck.symmetry.irreducible));
  EXPECT_EQ(watching.first_done, plan.progress(interrupting.last_step));
  EXPECT_EQ(watching.tiles, plan.size() - interrupting.last_step);
  EXPECT_EQ(whole.normal_per_ps, resumed.normal_per_ps);
  EXPECT_EQ(whole.umklapp_per_ps, resumed.umklapp_per_ps);
  EXPECT_EQ(whole.processes, resumed.processes);
}

// A tile is at most a star of total momenta and fifteen more. That is 63/N³ of all momenta and
// about as much of the work: small stars are dear, but share their tile. The share falls with the
// mesh, and so with the length of the job.
TEST(Tiles4ph, ATileIsASmallShareOfTheWork) {
  for (const int n : {8, 12, 16}) {
    const std::string mesh = std::to_string(n);
    const Deck deck =
        coarse_deck({{"ngrid", mesh + " " + mesh + " " + mesh}, {"scalebroad", "0.1"}});
    SilentProgress silent;
    const Modes modes = start_run(deck, deck.control.harmonic_options(), silent).modes;
    const TilePlan4ph plan = plan_tiles_4ph(
        make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control.four_phonon_options(),
                         *deck.fourth_order, deck.symmetry.irreducible));
    const double largest = plan.work(0) / plan.work_before.back();
    EXPECT_LT(largest, 64.0 / (n * n * n)) << mesh;
    std::printf("    %d³: %lld tiles, the dearest %.2f %% of the work; %zu modes and channels\n", n,
                static_cast<long long>(plan.size()), 100.0 * largest,
                3 * deck.symmetry.irreducible.size() * static_cast<std::size_t>(modes.n_branches));
  }
}

/// Records the reported shares with the processor time of this process, which other work on the
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

/// Largest factor between the time left that follows from the reported share, elapsed/share less
/// elapsed, and the time that was left, at a quarter, half and three quarters of a run. It is at
/// least 1.
double largest_factor(const Recording& recording) {
  const double start = recording.at.front().second;
  const double end = recording.at.back().second;
  double largest = 1.0;
  for (const double share : {0.25, 0.5, 0.75}) {
    const auto now = std::find_if(recording.at.begin(), recording.at.end(),
                                  [&](const auto& r) { return r.first >= share; });
    const double elapsed = now->second - start;
    const double left = end - now->second;
    const double predicted = elapsed / now->first - elapsed;
    std::printf("    at %.2f: %.2f s left, predicted %.2f\n", now->first, left, predicted);
    largest = std::max({largest, predicted / left, left / predicted});
  }
  return largest;
}

// The predicted time left agrees with the true one within a factor of 1.35: tiles differ in work by
// three times and more, and the weights of the shares were measured on another device. A machine
// whose speed changes during a run spoils that run alone, whereas wrong shares spoil every run.
// One run of three has to agree.
TEST(Tiles4ph, TimeLeftIsHonest) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "a sanitizer slows the parts of a tile by different factors; the prediction is for "
         "a plain build";
#endif
  const Deck deck = coarse_deck({{"ngrid", "8 8 8"}, {"scalebroad", "0.05"}});
  SilentProgress silent;
  const Modes modes = start_run(deck, deck.control.harmonic_options(), silent).modes;
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 3 && least >= 1.35; ++run) {
    Recording recording;
    rates_at(deck, modes, deck.symmetry.irreducible, recording);
    ASSERT_GT(recording.at.size(), 20u);
    EXPECT_EQ(recording.at.front().first, 0.0);
    EXPECT_EQ(recording.at.back().first, 1.0);
    least = std::min(least, largest_factor(recording));
  }
  EXPECT_LT(least, 1.35);
}

// Devices take tiles by falling predicted cost, and tiles are added in the order of the plan. Any
// number of devices gives the same bits, whichever device is faster.
TEST_P(Tiles4phOnDevice, OneTwoAndFourDevicesGiveTheSameBits) {
  const Deck deck = coarse_deck({{"ngrid", "5 5 5"}, {"scalebroad", "0.1"}});
  SilentProgress silent;
  const Modes modes = start_run(deck, deck.control.harmonic_options(), silent).modes;
  const Problem4ph problem =
      make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control.four_phonon_options(),
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

/// Rates of a deck whose problem is made early or in finish().
std::unique_ptr<FourPhononRun> run_begun(const Deck& deck, ConductivityRun& run,
                                         const Device& device, bool early) {
  SilentProgress silent;
  const Transport transport{deck.crystal, deck.symmetry, run.modes,
                            deck.control.transport_options()};
  FourPhononStart begun(transport, *deck.fourth_order, deck.control.four_phonon_options(), {device},
                        early);
  return run_four_phonon(transport, begun, {.devices = {device}}, run, silent);
}

// A problem that is made and loaded by a thread of its own gives the bits of one that is made when
// it is needed, and its failure reaches the caller.
TEST_P(Tiles4phOnDevice, AnEarlyProblemGivesTheSameBits) {
  const Deck deck = coarse_deck({{"scalebroad", "0.1"}});
  SilentProgress silent;
  ConductivityRun run = start_run(deck, deck.control.harmonic_options(), silent);
  const auto later = run_begun(deck, run, GetParam(), false),
             early = run_begun(deck, run, GetParam(), true);
  EXPECT_EQ(early->rates.normal_per_ps, later->rates.normal_per_ps);
  EXPECT_EQ(early->rates.umklapp_per_ps, later->rates.umklapp_per_ps);
  EXPECT_EQ(early->n_blocks, deck.fourth_order->n_blocks());
  EXPECT_GT(early->rates.evaluations, 0.0);
  const Device absent{.backend = Backend::kCuda, .index = 99};
  for (const bool begins_early : {true, false})
    EXPECT_THROW(run_begun(deck, run, absent, begins_early), std::exception);
}

// The plan holds every total momentum once, by falling work. The processes found agree with the
// predicted ones to 15 % over all and to 25 % for each tile. The prediction samples 64 q'' and
// takes densities over 1/256 of the range.
TEST(Tiles4ph, PredictedProcessesAreThoseFound) {
  for (const char* compat : {"none", "fourphonon"}) {
    const Deck deck = coarse_deck({{"ngrid", "6 6 6"}, {"scalebroad", "0.1"}, {"compat", compat}});
    SilentProgress silent;
    const Modes modes = start_run(deck, deck.control.harmonic_options(), silent).modes;
    const Problem4ph problem =
        make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control.four_phonon_options(),
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

QUASI_ON_EVERY_DEVICE(Tiles4phOnDevice);

}  // namespace
}  // namespace quasi::thermal
