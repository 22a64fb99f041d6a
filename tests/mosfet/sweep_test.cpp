#include "workers/mosfet/solver/sweep/sweep.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <cmath>
#include <ctime>

#include "tests/mosfet/fixtures.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/mosfet/solver/sweep/point_progress.hpp"

namespace quasi::mosfet {
namespace {

Deck small_deck(const std::vector<Setting>& settings) {
  std::vector<Setting> all{{"mesh.subbands", "1"},
                           {"mesh.nw", "12"},
                           {"mesh.nphi", "8"},
                           {"mesh.wmax_ev", "0.9"},
                           {"run.refresh_steps", "20"}};
  all.insert(all.end(), settings.begin(), settings.end());
  return test::default_deck(33, 17, all);
}

/// Cancels after a number of reports; asks for a checkpoint at every look.
class Interrupting : public SilentProgress {
 public:
  explicit Interrupting(int reports) : left_(reports) {}
  bool cancelled() const override { return left_ <= 0; }
  bool checkpoint_wanted() override { return true; }
  void checkpoint_ready(const std::string&, std::int64_t) override {}

 protected:
  void on_report(std::string_view, std::int64_t, std::int64_t) override { --left_; }

 private:
  std::atomic<int> left_;
};

// Interrupted again and again, a sweep ends with the bits of an undisturbed one: finished points
// are kept, running ones go on from their checkpoint.
TEST(Sweep, ResumesWithTheSameBits) {
  const Deck deck = small_deck({{"bias.vgs", "[0.4, 0.6]"},
                                {"bias.vds", "[0.1, 0.2]"},
                                {"run.t_end_fs", "24.0"},
                                {"run.steady_tol", "0.2"},
                                {"run.window_fs", "8.0"}});
  for (const Device& device : test::one_device_of_each_kind()) {
    SCOPED_TRACE(device.name());
    SilentProgress silent;
    const SweepOptions alone{.devices = {device}};
    const std::vector<PointResult> expected = run_sweep(deck, alone, silent);

    const test::TemporaryDirectory directory;
    const SweepOptions resumable{.devices = {device}, .checkpoint_directory = directory.path()};
    int interruptions = 0;
    std::vector<PointResult> resumed;
    for (int reports = 2;; ++reports) {
      ASSERT_LT(interruptions, 60);
      Interrupting progress(reports);
      try {
        resumed = run_sweep(deck, resumable, progress);
        break;
      } catch (const Cancelled&) {
        ++interruptions;
      }
    }
    EXPECT_GE(interruptions, 2);
    ASSERT_EQ(resumed.size(), expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_EQ(resumed[k].status, expected[k].status);
      for (const auto& [name, value] : expected[k].numbers)
        EXPECT_EQ(resumed[k].numbers.at(name), value) << name;
      for (const auto& [name, array] : expected[k].arrays)
        EXPECT_EQ(resumed[k].arrays.at(name).values, array.values) << name;
    }
  }
}

/// Asked to stop a given time after its making; the time is the processor's, which other work on
/// the machine does not stretch as long as one thread runs: several wait for each other in loops
/// that count.
class StoppedAfter : public SilentProgress {
 public:
  explicit StoppedAfter(double seconds) : at_s_(now_s() + seconds) {}
  bool cancelled() const override { return late_s() >= 0.0; }
  double late_s() const { return now_s() - at_s_; }

 private:
  static double now_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }
  const double at_s_;
};

// Whenever it is asked to, while points start, step or are saved: within a second. A GPU gets the
// standard mesh's energies, angles and z, and with them lanes of which each starts with an
// equilibrium; a CPU a mesh whose steps take milliseconds.
TEST(Sweep, StopsWithinASecondOfBeingAsked) {
  const Device device = find_device("auto");
  const bool gpu = device.backend == Backend::kCuda;
  const Deck deck = test::default_deck(33, gpu ? 65 : 17,
                                       {{"mesh.subbands", "2"},
                                        {"mesh.nw", gpu ? "300" : "24"},
                                        {"mesh.nphi", gpu ? "48" : "12"},
                                        {"bias.vgs", "[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]"},
                                        {"run.t_end_fs", "4000.0"}});
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  for (const double seconds : {0.02, 0.5}) {
    const test::TemporaryDirectory directory;
    StoppedAfter progress(seconds);
    EXPECT_THROW(
        run_sweep(deck, {.devices = {device}, .checkpoint_directory = directory.path()}, progress),
        Cancelled);
    EXPECT_LT(progress.late_s(), 1.0) << seconds;
  }
  omp_set_num_threads(threads);
}

// It is passed over: the run begins anew and ends with the bits of one that never saw it.
TEST(Sweep, ACheckpointOfAnotherDeckIsNotUsed) {
  const test::TemporaryDirectory directory;
  const SweepOptions options{.devices = {find_device("cpu")},
                             .checkpoint_directory = directory.path()};
  SilentProgress silent;
  const Deck other = small_deck({{"run.t_end_fs", "1.0"}}),
             deck = small_deck({{"run.t_end_fs", "2.0"}});
  run_sweep(other, options, silent);
  const PointResult found = run_sweep(deck, options, silent)[0];
  const PointResult alone = run_sweep(deck, {.devices = {find_device("cpu")}}, silent)[0];
  EXPECT_EQ(found.numbers, alone.numbers);
  EXPECT_GT(found.numbers.at("time_fs"), 1.5);
}

// The number of lanes changes what runs beside a point, not the point.
TEST(Sweep, LanesDoNotMatter) {
  const Deck deck = small_deck({{"bias.vgs", "[0.3, 0.4, 0.6]"},
                                {"bias.vds", "[0.1]"},
                                {"run.t_end_fs", "6.0"},
                                {"run.mode", "transient"}});
  SilentProgress silent;
  const auto one = run_sweep(
      deck, {.devices = {find_device("cpu")}, .checkpoint_directory = {}, .lanes = 1}, silent);
  const auto three = run_sweep(
      deck, {.devices = {find_device("cpu")}, .checkpoint_directory = {}, .lanes = 3}, silent);
  for (std::size_t k = 0; k < one.size(); ++k) EXPECT_EQ(one[k].numbers, three[k].numbers);
}

// Chains spread over two devices (one twice, where there is but one of its kind), interrupted and
// resumed, and once resumed on one device alone: who ran a point and what ran beside it changes no
// bit.
TEST(Sweep, SeveralDevicesShareAResumableSweep) {
  const Deck deck = small_deck({{"bias.vgs", "[0.3, 0.4, 0.5, 0.6]"},
                                {"bias.vds", "[0.1, 0.2]"},
                                {"run.t_end_fs", "8.0"},
                                {"run.steady_tol", "0.2"},
                                {"run.window_fs", "3.0"},
                                {"run.refresh_steps", "5"}});
  for (const Device& device : test::one_device_of_each_kind()) {
    SCOPED_TRACE(device.name());
    const Device first = device.backend == Backend::kCpu ? device : find_device("cuda:0");
    SilentProgress silent;
    const auto alone = run_sweep(deck, {.devices = {first}}, silent);
    const test::TemporaryDirectory directory;
    std::vector<PointResult> shared;
    int interruptions = 0;
    for (int reports = 12; shared.empty(); ++reports) {
      ASSERT_LT(interruptions, 60);
      Interrupting progress(reports);
      try {
        shared = run_sweep(deck,
                           {.devices = interruptions == 1 ? std::vector<Device>{device}
                                                          : std::vector<Device>{first, device},
                            .checkpoint_directory = directory.path()},
                           progress);
      } catch (const Cancelled&) {
        ++interruptions;
      }
    }
    EXPECT_GE(interruptions, 2);
    for (std::size_t k = 0; k < alone.size(); ++k) {
      EXPECT_EQ(alone[k].numbers, shared[k].numbers);
      EXPECT_EQ(alone[k].arrays.at("potential").values, shared[k].arrays.at("potential").values);
    }
  }
}

// One device's point leaves the energy window within 8 fs. The other device ends the point of
// 100 fs that it holds and begins no further one of its chain. A busy machine may start the failing
// point late, so the chain has ten points, 125 times the work of the failing one.
TEST(Sweep, AFailureOnOneDeviceEndsTheOthersWithTheirPoint) {
  std::string points;
  for (int k = 0; k < 10; ++k) points += "[0.4, " + std::to_string(0.01 * k) + "], ";
  const Deck deck = small_deck({{"bias.points", "[" + points + "[0.6, 1.5]]"},
                                {"mesh.wmax_ev", "0.2"},
                                {"run.t_end_fs", "100.0"},
                                {"run.steady_tol", "1e-8"},
                                {"run.refresh_steps", "2"}});
  const Device cpu = find_device("cpu");
  int finished = 0;
  const SweepOptions options{.devices = {cpu, cpu},
                             .on_finished = [&](int, const PointResult&) { ++finished; }};
  SilentProgress silent;
  EXPECT_THROW(run_sweep(deck, options, silent), InvalidInput);
  EXPECT_LT(finished, 10) << "the chain was computed to its end after the failure";
}

// The lead takes the ringing of the contacts' plasma (19 fs) out of the way to the steady state and
// leaves the state: from 40 fs on the current through the source contact swings a third as far
// (found: a sixth; what is left is no ringing), and both ways end at the same current.
TEST(Sweep, TheLeadDampsThePlasmaAndKeepsTheSteadyState) {
  const auto run = [](const char* damping) {
    const Deck deck = small_deck({{"bias.vgs", "0.5"},
                                  {"bias.vds", "0.1"},
                                  {"run.t_end_fs", "200.0"},
                                  {"run.steady_tol", "1e-7"},
                                  {"mesh.nw", "24"},
                                  {"output.every_fs", "1.0"},
                                  {"run.plasma_damping", damping}});
    SilentProgress silent;
    return run_sweep(deck, {.devices = {find_device("cpu")}}, silent)[0];
  };
  // How far I at the source junction swings between two of its samples 10 fs apart, half a period.
  const auto swing = [](const PointResult& point) {
    const auto& history = point.arrays.at("history").values;
    double largest = 0.0;
    for (std::size_t row = 40; row + 10 < history.size() / kHistoryWidth && row < 100; ++row)
      largest = std::max(largest, std::fabs(history[(row + 10) * kHistoryWidth + 2] -
                                            history[row * kHistoryWidth + 2]));
    return largest;
  };
  const PointResult ringing = run("0.0"), damped = run("1.0");
  std::printf("    swing %.3g A/m, %.3g with the lead; current %.6g, %.6g\n", swing(ringing),
              swing(damped), ringing.numbers.at("current_mean_a_per_m"),
              damped.numbers.at("current_mean_a_per_m"));
  EXPECT_LT(swing(damped), 0.3 * swing(ringing));
  EXPECT_NEAR(
      damped.numbers.at("current_mean_a_per_m") / ringing.numbers.at("current_mean_a_per_m"), 1.0,
      5e-3);  // Both still creep.
}

// A steady point is one whose I(x) is flat and whose mean stands still, to what the deck asks for.
TEST(Sweep, ASteadyPointIsAsFlatAndAsStillAsAsked) {
  const Deck deck = small_deck({{"bias.vgs", "0.5"},
                                {"bias.vds", "0.2"},
                                {"run.t_end_fs", "600.0"},
                                {"run.steady_tol", "5e-3"},
                                {"run.window_fs", "30.0"}});
  SilentProgress silent;
  const PointResult point = run_sweep(deck, {.devices = {find_device("cpu")}}, silent)[0];
  EXPECT_EQ(point.status, PointStatus::kConverged);
  const auto& profile = point.arrays.at("current_x").values;
  double low = 1e300, high = -1e300, mean = 0.0;
  for (std::size_t i = 1; i + 1 < profile.size(); ++i) {
    low = std::min(low, profile[i]);
    high = std::max(high, profile[i]);
    mean += profile[i] / static_cast<double>(profile.size() - 2);
  }
  EXPECT_LT(high - low, 5e-3 * mean);
  EXPECT_NEAR(point.numbers.at("current_spread_a_per_m"), high - low, 1e-9 * mean);
  EXPECT_LT(point.numbers.at("current_drift_a_per_m"), 5e-3 * mean);
}

// Without drain bias it comes to rest: 1e-3 of the flux that the contacts send in.
TEST(Sweep, AnUnbiasedTransistorComesToRest) {
  const Deck deck = small_deck({{"bias.vgs", "0.6"},
                                {"bias.vds", "0.0"},
                                {"run.t_end_fs", "300.0"},
                                {"run.steady_tol", "1e-7"},
                                {"run.window_fs", "40.0"},
                                {"mesh.nw", "24"}});
  SilentProgress silent;
  const PointResult point = run_sweep(deck, {.devices = {find_device("cpu")}}, silent)[0];
  // ∫∫ v cos φ Φ over the entering half of a Maxwellian is about N √(kT/2πm): 0.6 nm⁻², 0.26 m0.
  const double thermal = 0.6 * std::sqrt(0.025852 / (2.0 * M_PI * 0.26 * 5.6856)) * 1.602e5;
  const auto& profile = point.arrays.at("current_x").values;
  for (std::size_t i = 1; i + 1 < profile.size(); ++i)
    EXPECT_LT(std::fabs(profile[i]), 1e-3 * thermal) << i;
}

class Listening : public SilentProgress {
 public:
  void log(std::string_view line) override { heard_ += std::string(line) + '\n'; }
  bool heard(const std::string& words) const { return heard_.find(words) != std::string::npos; }

 private:
  std::string heard_;
};

// What a mesh cannot hold but need not stop for is said, and only then.
TEST(Sweep, WarnsOfAFullTopCellAndOfUndershoots) {
  const auto run = [](const char* ceiling, const char* epsilon, Listening* progress) {
    const Deck deck = small_deck({{"mesh.wmax_ev", ceiling},
                                  {"run.weno_epsilon", epsilon},
                                  {"mesh.nw", "24"},
                                  {"bias.vgs", "0.3"},
                                  {"bias.vds", "0.1"},
                                  {"run.t_end_fs", "15.0"},
                                  {"run.window_fs", "5.0"}});
    return run_sweep(deck, {.devices = {find_device("cpu")}}, *progress)[0];
  };
  Listening low, linear, quiet;
  const double share = run("0.24", "1e-12", &low).numbers.at("top_share");
  EXPECT_GT(share, 1e-3);
  EXPECT_LT(share, 1e-2);
  EXPECT_TRUE(low.heard("consider a higher mesh.wmax_ev"));
  EXPECT_LT(run("0.9", "1e-2", &linear).numbers.at("min_pdf"), -2e-3);
  EXPECT_TRUE(linear.heard("undershoots"));
  EXPECT_GT(run("0.9", "1e-12", &quiet).numbers.at("min_pdf"), -2e-3);
  EXPECT_FALSE(quiet.heard("undershoots"));
  EXPECT_FALSE(quiet.heard("highest energy cell"));
}

TEST(Sweep, TooLowAnEnergyCeilingIsAnErrorWithItsRemedy) {
  const Deck deck = small_deck({{"mesh.wmax_ev", "0.12"},
                                {"bias.vgs", "0.6"},
                                {"bias.vds", "0.4"},
                                {"run.t_end_fs", "200.0"}});
  SilentProgress silent;
  try {
    run_sweep(deck, {.devices = {find_device("cpu")}}, silent);
    FAIL() << "accepted";
  } catch (const InvalidInput& failure) {
    EXPECT_NE(std::string(failure.what()).find("raise mesh.wmax_ev"), std::string::npos)
        << failure.what();
  }
}

// Neutral inflow holds the charge of the contact columns at their doping, where the fixed one
// misses it by the drift of the electrons: 0.6 nm⁻² at 1e20 cm⁻³ and 6 nm.
TEST(Sweep, NeutralInflowKeepsTheContactsNeutral) {
  const auto run = [](const char* inflow) {
    const Deck deck = small_deck({{"bias.vgs", "0.7"},
                                  {"bias.vds", "0.3"},
                                  {"run.t_end_fs", "60.0"},
                                  {"run.window_fs", "20.0"},
                                  {"mesh.nw", "24"},
                                  {"mesh.subbands", "2"},
                                  {"contact.inflow", inflow}});
    SilentProgress silent;
    return run_sweep(deck, {.devices = {find_device("cpu")}}, silent)[0];
  };
  const auto missing = [](const PointResult& point, std::size_t column) {
    const auto& sheet = point.arrays.at("sheet_density").values;
    double total = 0.0;
    for (std::size_t a = 0; a < 6; ++a) total += 2.0 * sheet[a * 33 + column];
    return std::fabs(total / 0.6 - 1.0);
  };
  const PointResult fixed = run("fixed"), neutral = run("neutral");
  for (const std::size_t column : {0u, 32u}) {
    std::printf("    column %zu: %.2e with fixed, %.2e with neutral inflow\n", column,
                missing(fixed, column), missing(neutral, column));
    EXPECT_LT(missing(neutral, column), 0.3 * missing(fixed, column));
  }
  EXPECT_NEAR(neutral.numbers.at("inflow_scale_source"), 1.0, 0.2);
  EXPECT_NEAR(neutral.numbers.at("current_mean_a_per_m") / fixed.numbers.at("current_mean_a_per_m"),
              1.0, 0.1);
}

// The coupled steady state of the reference's coarse run, on the same mesh and scheme: 1065.2 A/m
// mid-channel, window scatter 0.5; levels of the barrier and density with it.
TEST(Sweep, CoupledSteadyStateOfTheReference) {
  if (std::getenv("QUASI_NIGHTLY") == nullptr) GTEST_SKIP() << "set QUASI_NIGHTLY=1 to run it";
  const Deck deck = test::default_deck(33, 65,
                                       {{"mesh.subbands", "3"},
                                        {"mesh.nw", "48"},
                                        {"mesh.nphi", "16"},
                                        {"mesh.wmax_ev", "0.9"},
                                        {"mesh.phi_flux", "split"},
                                        {"run.weno_epsilon", "1e-6"},
                                        {"bias.vgs", "0.6"},
                                        {"bias.vds", "0.4"},
                                        {"run.mode", "steady"},
                                        {"run.t_end_fs", "800.0"},
                                        {"run.steady_tol", "2e-3"}});
  SilentProgress silent;
  const PointResult point = run_sweep(deck, {.devices = {find_device("auto")}}, silent)[0];
  EXPECT_EQ(point.status, PointStatus::kConverged);
  EXPECT_NEAR(point.numbers.at("current_a_per_m") / 1065.2, 1.0, 5e-3);
  EXPECT_NEAR(point.numbers.at("ballistic_ratio") / 1.157, 1.0, 1e-2);
  EXPECT_NEAR(point.numbers.at("barrier_top_nu2_ev"), 0.00136, 3e-4);
  EXPECT_NEAR(point.numbers.at("barrier_top_nu0_ev"), 0.03392, 3e-4);
}

// The reference's finest run G, 65 × 65 × 108 × 32 and three subbands, upwind: 1010.3 A/m within 2
// % (found 1010.5).
TEST(Sweep, SteadyCurrentOnTheFinestMeshOfTheReference) {
  if (std::getenv("QUASI_NIGHTLY") == nullptr) GTEST_SKIP() << "set QUASI_NIGHTLY=1 to run it";
  const Deck deck = test::default_deck(65, 65,
                                       {{"mesh.subbands", "3"},
                                        {"mesh.nw", "108"},
                                        {"mesh.nphi", "32"},
                                        {"mesh.wmax_ev", "0.9"},
                                        {"bias.vgs", "0.6"},
                                        {"bias.vds", "0.4"},
                                        {"run.t_end_fs", "900.0"}});
  SilentProgress silent;
  const PointResult point = run_sweep(deck, {.devices = {find_device("auto")}}, silent)[0];
  EXPECT_EQ(point.status, PointStatus::kConverged);
  EXPECT_LT(std::max(point.numbers.at("current_spread_a_per_m"),
                     point.numbers.at("current_drift_a_per_m")),
            1.05);
  EXPECT_NEAR(point.numbers.at("current_a_per_m") / 1010.3, 1.0, 0.02);
  EXPECT_NEAR(point.numbers.at("ballistic_ratio") / 0.905, 1.0, 0.02);
}

}  // namespace
}  // namespace quasi::mosfet
