// Steady states that a sweep finds: flat and constant currents, damped plasma oscillation, neutral
// contacts, warnings about the mesh, and currents of the reference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tests/mosfet/fixtures.hpp"
#include "workers/backend/error.hpp"
#include "workers/mosfet/solver/sweep/point_progress.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"

namespace quasi::mosfet {
namespace {

using test::small_deck;

// The lead damps the plasma oscillation of the contacts (19 fs) and leaves the steady state
// unchanged. From 40 fs on, the current through the source contact must swing at most 0.3 times as
// far; one sixth is measured, and the rest is no oscillation. Both runs end at one current.
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
  // Largest change of the source current between two samples 10 fs apart: half a period.
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
  // Both currents still creep.
  EXPECT_NEAR(
      damped.numbers.at("current_mean_a_per_m") / ringing.numbers.at("current_mean_a_per_m"), 1.0,
      5e-3);
}

// At a steady point I(x) is flat and its mean constant, both to the tolerance of the deck. The
// result states spread and drift. This mesh is far too coarse for its barrier: the current is 9
// times the ballistic one and the density 4 times that of equilibrium, so that the point is steady
// but unresolved.
TEST(Sweep, ASteadyPointIsAsFlatAndAsStillAsAsked) {
  const Deck deck = small_deck({{"bias.vgs", "0.5"},
                                {"bias.vds", "0.2"},
                                {"run.t_end_fs", "600.0"},
                                {"run.steady_tol", "5e-3"},
                                {"run.window_fs", "30.0"}});
  SilentProgress silent;
  const PointResult point = run_sweep(deck, {.devices = {find_device("cpu")}}, silent)[0];
  EXPECT_EQ(point.status, PointStatus::kUnresolved);
  EXPECT_GT(point.numbers.at("ballistic_ratio"), 5.0);
  EXPECT_GT(point.numbers.at("density_ratio"), 3.0);
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

// Without drain bias the current vanishes, to 1e-3 of the flux that the contacts send in.
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

/// Keeps the lines of the log.
class Listening : public SilentProgress {
 public:
  void log(std::string_view line) override { heard_ += std::string(line) + '\n'; }
  bool heard(const std::string& words) const { return heard_.find(words) != std::string::npos; }

 private:
  std::string heard_;
};

// A sweep warns of a filled highest energy cell and of undershoots of the distribution, and of
// neither where they are absent.
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

// An energy ceiling that the electrons reach is an error whose text names the key to raise.
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

// Neutral inflow holds the charge of the contact columns at their doping, 0.6 nm⁻² at 1e20 cm⁻³ and
// 6 nm. Fixed inflow misses the doping by the drift of the electrons.
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

// The coupled steady state of the reference's coarse run, on an equal mesh and scheme: 1065.2 A/m
// in the middle of the channel with a scatter of 0.5 A/m, and the levels of barrier and density.
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
  EXPECT_EQ(point.status, PointStatus::kUnresolved);  // above the ballistic current
  EXPECT_NEAR(point.numbers.at("current_a_per_m") / 1065.2, 1.0, 5e-3);
  EXPECT_NEAR(point.numbers.at("ballistic_ratio") / 1.157, 1.0, 1e-2);
  EXPECT_NEAR(point.numbers.at("barrier_top_nu2_ev"), 0.00136, 3e-4);
  EXPECT_NEAR(point.numbers.at("barrier_top_nu0_ev"), 0.03392, 3e-4);
}

// The reference's finest run G, 65 × 65 × 108 × 32 with three subbands, upwind: 1010.3 A/m within 2
// % (1010.5 A/m is measured).
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
