#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/mosfet/fixtures.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"
#include "workers/mosfet/solver/sweep/point_progress.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"

namespace quasi::mosfet {
namespace {

Deck transient_deck(const std::vector<Setting>& settings) {
  std::vector<Setting> all{
      {"mesh.subbands", "1"},  {"mesh.nw", "16"},         {"mesh.nphi", "8"},
      {"mesh.wmax_ev", "0.9"}, {"run.mode", "transient"}, {"run.refresh_steps", "40"},
      {"bias.vgs", "0.5"},     {"bias.vds", "0.1"},       {"output.every_fs", "1.0"}};
  all.insert(all.end(), settings.begin(), settings.end());
  return test::default_deck(33, 17, all);
}

PointResult run(const Deck& deck, const std::filesystem::path& output = {}) {
  SilentProgress silent;
  return run_sweep(
      deck,
      {.devices = {find_device("cpu")}, .checkpoint_directory = {}, .output_directory = output},
      silent)[0];
}

TEST(Waveform, IsPiecewiseLinearAndConstantOutside) {
  const Waveform wave{{10.0, 20.0, 30.0}, {0.0, 0.2, 0.2}};
  EXPECT_EQ(wave.at(0.0), 0.0);
  EXPECT_NEAR(wave.at(15.0), 0.1, 1e-15);
  EXPECT_EQ(wave.at(25.0), 0.2);
  EXPECT_EQ(wave.at(99.0), 0.2);
  EXPECT_EQ(wave.next_corner(0.0), 10.0);
  EXPECT_EQ(wave.next_corner(10.0), 20.0);
  EXPECT_EQ(wave.next_corner(30.0), INFINITY);
  EXPECT_FALSE(wave.moves(5.0));
  EXPECT_TRUE(wave.moves(10.0));
  EXPECT_FALSE(wave.moves(20.0));
  EXPECT_FALSE(wave.moves(31.0));
}

// A gate pulse raises the current by tens of percent while it lasts.
TEST(Transient, AGatePulseDrivesTheCurrent) {
  const auto strongest = [](const PointResult& point) {
    double largest = 0.0;
    const auto& history = point.arrays.at("history").values;
    for (std::size_t row = 0; row < history.size(); row += kHistoryWidth)
      if (history[row] > 15.0 && history[row] < 30.0) largest = std::max(largest, history[row + 3]);
    return largest;
  };
  const PointResult quiet = run(transient_deck({{"run.t_end_fs", "30.0"}}));
  const PointResult pulsed = run(transient_deck(
      {{"run.t_end_fs", "30.0"},
       {"bias.waveform_vgs", "[[10.0, 0.0], [12.0, 0.1], [25.0, 0.1], [28.0, 0.0]]"}}));
  EXPECT_GT(strongest(pulsed), 1.1 * strongest(quiet));
}

// Long after a pulse the current equals that of the undisturbed device to 1e-3, over windows of
// five plasma periods. The mesh is that of the reference's coarse run, because coarser ones ring
// for too long.
TEST(Transient, APulseReturnsToTheSteadyState) {
  if (std::getenv("QUASI_NIGHTLY") == nullptr) GTEST_SKIP() << "set QUASI_NIGHTLY=1 to run it";
  const std::vector<Setting> mesh{
      {"mesh.subbands", "3"},    {"mesh.nw", "48"},         {"mesh.nphi", "16"},
      {"bias.vgs", "0.6"},       {"bias.vds", "0.4"},       {"mesh.wmax_ev", "0.9"},
      {"run.mode", "transient"}, {"run.t_end_fs", "700.0"}, {"run.window_fs", "100.0"}};
  std::vector<Setting> wave(mesh);
  wave.push_back({"bias.waveform_vgs", "[[200.0, 0.0], [205.0, 0.1], [225.0, 0.1], [230.0, 0.0]]"});
  SilentProgress silent;
  const auto current = [&](const std::vector<Setting>& settings) {
    return run_sweep(test::default_deck(33, 33, settings), {.devices = {find_device("auto")}},
                     silent)[0]
        .numbers.at("current_mean_a_per_m");
  };
  EXPECT_NEAR(current(wave) / current(mesh), 1.0, 1e-3);
}

// The ballistic mode, coupled to its own field, carries the current over the tops of its own
// barriers to 1 %. The mesh error comes from Δx: 1.998, 1.066, 0.995, 0.992 of I_bal at 33, 65,
// 129, 257 columns (fourth order, that of ε'). Halving Δw changes 0.995 to 0.997.
TEST(Transient, TheBallisticModeCarriesTheBallisticCurrent) {
  if (std::getenv("QUASI_NIGHTLY") == nullptr) GTEST_SKIP() << "set QUASI_NIGHTLY=1 to run it";
  const Deck deck = test::default_deck(129, 33,
                                       {{"mesh.subbands", "2"},
                                        {"mesh.nw", "128"},
                                        {"mesh.nphi", "32"},
                                        {"mesh.wmax_ev", "0.8"},
                                        {"bias.vgs", "0.3"},
                                        {"bias.vds", "0.2"},
                                        {"run.mode", "transient"},
                                        {"run.transport", "ballistic"},
                                        {"run.t_end_fs", "400.0"},
                                        {"run.window_fs", "100.0"}});
  SilentProgress silent;
  const PointResult point = run_sweep(deck, {.devices = {find_device("auto")}}, silent)[0];
  EXPECT_NEAR(point.numbers.at("current_mean_a_per_m") / point.numbers.at("ballistic_a_per_m"), 1.0,
              1e-2);
}

// Kirchhoff: conduction plus displacement into the three terminals adds to zero at all times of a
// pulse on gate and drain, to the tolerance of Poisson's equation.
TEST(Transient, TerminalCurrentsAddToNothing) {
  const PointResult point = run(
      transient_deck({{"run.t_end_fs", "16.0"},
                      {"run.tol_v", "1e-11"},
                      {"run.refresh_steps", "2"},
                      {"mesh.nw", "12"},
                      {"bias.waveform_vgs", "[[3.0, 0.0], [5.0, 0.1], [9.0, 0.1], [11.0, 0.0]]"},
                      {"bias.waveform_vds", "[[6.0, 0.0], [12.0, 0.1]]"}}));
  const auto& currents = point.arrays.at("terminal_currents").values;
  ASSERT_GT(currents.size(), 15u * kTerminalCurrentWidth);
  double largest_gate = 0.0;
  for (std::size_t row = 0; row < currents.size(); row += kTerminalCurrentWidth) {
    const double scale = std::max(
        {std::fabs(currents[row + 1]), std::fabs(currents[row + 2]), std::fabs(currents[row + 3])});
    EXPECT_LT(std::fabs(currents[row + 1] + currents[row + 2] + currents[row + 3]), 1e-7 * scale)
        << currents[row];
    largest_gate = std::max(largest_gate, std::fabs(currents[row + 3]));
  }
  EXPECT_GT(largest_gate, 100.0);  // A/m; the charging current of the gate is not small
}

// A ramp that is shorter than a time step leaves the terminals at the waveform's last value.
TEST(Transient, ARampEndsAtItsValue) {
  const Deck deck =
      transient_deck({{"run.t_end_fs", "1.0"}, {"bias.waveform_vgs", "[[0.0, 0.0], [0.05, 0.1]]"}});
  const Structure s = make_structure(deck);
  const Equilibrium source = solve_contact(deck, s, 0), drain = solve_contact(deck, s, s.nx - 1);
  const PotentialBoundary expected = potential_boundary(deck, s, {0.6, 0.1}, source, drain);
  for (const Device& device : test::one_device_of_each_kind()) {
    SCOPED_TRACE(device.name());
    std::vector<double> potential_v;
    SweepOptions options{.devices = {device}, .checkpoint_directory = {}, .output_directory = {}};
    options.on_state = [&](int, const PointState& state, double) {
      potential_v = state.potential_v;
    };
    SilentProgress silent;
    run_sweep(deck, options, silent);
    ASSERT_EQ(potential_v.size(), expected.value_v.size());
    for (std::size_t k = 0; k < potential_v.size(); ++k)
      if (expected.fixed[k]) {
        ASSERT_NEAR(potential_v[k], expected.value_v[k], 1e-12) << k;
      }
  }
}

// Corners and single steps do not depend on how calls were split: a resumed pulse has equal bits.
class Impatient : public SilentProgress {
 public:
  explicit Impatient(int reports) : left_(reports) {}
  bool cancelled() const override { return left_ <= 0; }
  bool checkpoint_wanted() override { return true; }

 protected:
  void on_report(std::string_view, std::int64_t, std::int64_t) override { --left_; }

 private:
  int left_;
};

// Each attempt writes to a directory of its own, as on different machines. The last directory holds
// every snapshot of the pdf.
TEST(Transient, AResumedPulseHasTheSameBits) {
  const Deck deck = transient_deck({{"run.t_end_fs", "12.0"},
                                    {"run.refresh_steps", "4"},
                                    {"output.pdf_at_fs", "[0.5, 6.0, 12.0]"},
                                    {"bias.waveform_vgs", "[[2.0, 0.0], [5.0, 0.1], [7.0, 0.0]]"}});
  for (const Device& device : test::one_device_of_each_kind()) {
    SCOPED_TRACE(device.name());
    const test::TemporaryDirectory undisturbed;
    SilentProgress silent;
    const PointResult expected = run_sweep(
        deck,
        {.devices = {device}, .checkpoint_directory = {}, .output_directory = undisturbed.path()},
        silent)[0];
    const test::TemporaryDirectory directory;
    int interruptions = 0;
    for (int reports = 6;; ++reports) {
      ASSERT_LT(interruptions, 60);
      Impatient progress(reports);
      const test::TemporaryDirectory out;
      try {
        const PointResult found = run_sweep(deck,
                                            {.devices = {device},
                                             .checkpoint_directory = directory.path(),
                                             .output_directory = out.path()},
                                            progress)[0];
        for (const char* name : {"pdf_0_0.h5", "pdf_0_1.h5", "pdf_0_2.h5"}) {
          const H5Reader a(undisturbed.path() / name), b(out.path() / name);
          EXPECT_EQ(a.doubles("/pdf"), b.doubles("/pdf")) << name;
          EXPECT_EQ(a.number("/time"), b.number("/time")) << name;
        }
        EXPECT_EQ(found.numbers, expected.numbers);
        EXPECT_EQ(found.arrays.at("terminals").values, expected.arrays.at("terminals").values);
        break;
      } catch (const Cancelled&) {
        ++interruptions;
      }
    }
    EXPECT_GE(interruptions, 2);
  }
}

// A snapshot holds the pdf of its time. Its sum is the sheet density reported at the end of the
// run.
TEST(Transient, SnapshotsHoldThePdf) {
  const test::TemporaryDirectory directory;
  const PointResult point = run(transient_deck({{"run.t_end_fs", "3.0"},
                                                {"output.pdf_at_fs", "[1.0, 3.0]"},
                                                {"mesh.nw", "32"},
                                                {"mesh.nphi", "16"}}),
                                directory.path());
  for (const char* name : {"pdf_0_0.h5", "pdf_0_1.h5"})
    ASSERT_TRUE(std::filesystem::exists(directory.path() / name));
  EXPECT_LT(std::filesystem::file_size(directory.path() / "pdf_0_1.h5"),
            0.9 * (3 * 33 * 32 * 9 * sizeof(float)));  // compressed
  const H5Reader file(directory.path() / "pdf_0_1.h5");
  EXPECT_NEAR(file.number("/time"), 3.0, 1e-9);
  const auto shape = file.shape("/pdf");
  ASSERT_EQ(shape, (std::vector<std::int64_t>{3, 1, 33, 32, 9}));
  const auto pdf = file.doubles("/pdf");
  const auto& sheet = point.arrays.at("sheet_density").values;
  const double dw = 0.9 / 32, dphi = 2.0 * M_PI / 16;
  for (std::size_t cell = 0; cell < sheet.size(); ++cell) {
    double sum = 0.0;
    for (int l = 0; l < 32; ++l)
      for (int m = 0; m < 9; ++m)
        sum += (m == 0 || m == 8 ? 1.0 : 2.0) * dphi * dw * pdf[(cell * 32 + l) * 9 + m];
    EXPECT_NEAR(sum / sheet[cell], 1.0, 1e-5);  // single precision
  }
}

// Fermi statistics: the quasi-equilibrium of an unbiased transistor is the steady state of blocked
// transport up to the discretisation, and no cell leaves [0, 1].
TEST(Transient, AnUnbiasedFermiTransistorStandsStill) {
  const PointResult point = run(transient_deck({{"statistics.kind", "fermi"},
                                                {"bias.vds", "0.0"},
                                                {"bias.vgs", "0.6"},
                                                {"mesh.nw", "48"},
                                                {"run.t_end_fs", "12.0"},
                                                {"run.window_fs", "3.0"}}));
  EXPECT_LT(std::fabs(point.numbers.at("current_mean_a_per_m")),
            1e-6);  // antisymmetric about the middle
  EXPECT_LT(std::fabs(point.numbers.at("current_a_per_m")),
            15.0);  // next to mid-channel; the thermal flux is 1e4
  EXPECT_GT(point.numbers.at("highest_occupation"), 0.5);
  EXPECT_LT(point.numbers.at("highest_occupation"), 1.1);  // discretisation error of this mesh
  EXPECT_GT(point.numbers.at("lowest_occupation"), -1e-3);
}

}  // namespace
}  // namespace quasi::mosfet
