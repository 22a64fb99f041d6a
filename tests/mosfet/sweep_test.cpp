// Tests runs of a sweep of bias points: interruptions, checkpoints, lanes, devices and failures
// change neither its points nor their bits. The truth is the undisturbed run on one device.

#include "workers/mosfet/solver/sweep/sweep.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <ctime>

#include "tests/mosfet/fixtures.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"

namespace quasi::mosfet {
namespace {

using test::small_deck;

/// Cancels after a number of progress reports, and asks for a checkpoint at every opportunity.
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

// A sweep that is interrupted again and again ends with the bits of an uninterrupted one: finished
// points are kept, and running points continue from their checkpoint.
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

/// Cancels after a given processor time. Other work on the machine does not stretch processor time
/// while one thread runs. Several threads wait for each other in loops that consume it.
class StoppedAfter : public SilentProgress {
 public:
  explicit StoppedAfter(double seconds) : at_s_(now_s() + seconds) {}
  bool cancelled() const override { return late_s() >= 0.0; }
  double late_s() const { return now_s() - at_s_; }

 private:
  static double now_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }
  const double at_s_;
};

// A sweep stops within a second of the request, while points start, step or are saved. A GPU gets
// the energies, angles and z of the standard mesh, so that each lane starts with a long
// equilibrium. A CPU gets a mesh whose steps take milliseconds.
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

// The checkpoint of another deck is ignored: the run starts anew and ends with the bits of a run
// without a checkpoint.
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

// The number of lanes decides which points run at the same time. It changes no point.
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

// Chains are spread over two devices (one device twice, where the machine has one of its kind),
// interrupted, and resumed, once on one device alone. Neither the device of a point nor its
// neighbours change a bit.
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
                             .on_finished = [&](const std::map<int, PointResult>& found) {
                               finished += static_cast<int>(found.size());
                             }};
  SilentProgress silent;
  EXPECT_THROW(run_sweep(deck, options, silent), InvalidInput);
  EXPECT_LT(finished, 10) << "the chain was computed to its end after the failure";
}

}  // namespace
}  // namespace quasi::mosfet
