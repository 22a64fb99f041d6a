// Tests how points of the beam scheme start from the last points of their chain.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/mosfet/fixtures.hpp"
#include "tests/support/reference_data.hpp"
#include "workers/backend/error.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/solver/beam/beam_point.hpp"
#include "workers/mosfet/solver/beam/beam_start.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"

namespace quasi::mosfet {
namespace {

Deck map_deck(const std::string& vgs, const std::string& vds) {
  return test::default_deck(33, 17,
                            {{"mesh.subbands", "1"},
                             {"mesh.dh_ev", "0.025"},
                             {"mesh.nkappa", "4"},
                             {"run.scheme", "beam"},
                             {"bias.vgs", vgs},
                             {"bias.vds", vds}});
}

std::vector<PointResult> run(const Deck& deck, const std::vector<Device>& devices) {
  SilentProgress silent;
  return run_sweep(deck, {.devices = devices}, silent);
}

BeamStart start_at(double vds_v, double fermi_ev) {
  return {.bias = {0.3, vds_v},
          .fermi_ev = {fermi_ev},
          .potential_v = {2.0 * vds_v},
          .shifts_ev = {0.1 * vds_v, 0.0}};
}

// Levels are extrapolated in V_DS, by no more than V_DS changes.
TEST(BeamStart, ExtrapolatesTheLastTwoPoints) {
  const std::vector<BeamStart> before{start_at(0.1, -0.04), start_at(0.2, -0.09)};
  const auto next = predicted_start(before, {0.3, 0.3});
  ASSERT_TRUE(next);
  EXPECT_NEAR(next->fermi_ev[0], -0.14, 1e-15);
  EXPECT_NEAR(next->potential_v[0], 0.6, 1e-15);
  EXPECT_NEAR(next->shifts_ev[0], 0.03, 1e-15);
  const auto steep = predicted_start({start_at(0.1, 0.0), start_at(0.2, -0.5)}, {0.3, 0.4});
  EXPECT_NEAR(steep->fermi_ev[0], -0.7, 1e-15);
}

// One point, or two that are much closer than the next one, scale with V_DS. Nothing follows from
// equilibrium or from the other sign.
TEST(BeamStart, ScalesASinglePoint) {
  EXPECT_NEAR(predicted_start({start_at(0.1, -0.04)}, {0.3, 0.3})->fermi_ev[0], -0.12, 1e-15);
  EXPECT_NEAR(
      predicted_start({start_at(0.1, 0.0), start_at(0.11, -0.04)}, {0.3, 0.22})->fermi_ev[0], -0.08,
      1e-15);
  EXPECT_FALSE(predicted_start({}, {0.3, 0.3}));
  EXPECT_FALSE(predicted_start({start_at(0.0, 0.0)}, {0.3, 0.3}));
  EXPECT_FALSE(predicted_start({start_at(-0.1, 0.0)}, {0.3, 0.3}));
}

// Both ways end in the same solution: 1e-6 V leave some 1e-5 of the current. Alone the five points
// take 578 line solves, in a chain 445.
TEST(BeamStart, AChainSavesLineSolves) {
  const Deck deck = map_deck("0.8", "[0.05, 0.1, 0.2, 0.4, 0.6]");
  const Device cpu = find_device("cpu");
  const auto chain = run(deck, {cpu});
  double with = 0.0, without = 0.0;
  for (std::size_t k = 0; k < chain.size(); ++k) {
    Deck alone = deck;
    alone.points = {deck.points[k]};
    const PointResult point = run(alone, {cpu})[0];
    EXPECT_NEAR(chain[k].numbers.at("current_a_per_m") / point.numbers.at("current_a_per_m"), 1.0,
                1e-4)
        << k;
    RecordProperty("line_solves_" + std::to_string(k),
                   std::to_string(static_cast<int>(point.numbers.at("line_solves"))) + " alone, " +
                       std::to_string(static_cast<int>(chain[k].numbers.at("line_solves"))));
    with += chain[k].numbers.at("line_solves");
    without += point.numbers.at("line_solves");
  }
  EXPECT_LT(with, 0.85 * without) << with << " of " << without;
}

// The chains follow from the deck alone, so that one, two and three devices give equal bits.
TEST(BeamStart, TheNumberOfDevicesDoesNotMatter) {
  const Deck deck = map_deck("[0.1, 0.3, 0.5]", "[0.1, 0.2]");
  for (const Device& device : test::one_device_of_each_kind()) {
    const auto one = run(deck, {device});
    for (const std::size_t count : {2, 3}) {
      const auto many = run(deck, std::vector<Device>(count, device));
      for (std::size_t k = 0; k < one.size(); ++k) {
        EXPECT_EQ(many[k].numbers, one[k].numbers) << count << ' ' << k;
        for (const auto& [name, array] : one[k].arrays)
          EXPECT_EQ(many[k].arrays.at(name).values, array.values) << name;
      }
    }
  }
}

/// Keeps the lines of a log.
class KeptLog : public SilentProgress {
 public:
  void log(std::string_view line) override { text += std::string(line) + "\n"; }
  std::string text;
};

// The way through lower V_DS ends in the point itself: 1e-6 V leave some 1e-5 of the current.
TEST(BeamStart, APointIsReachedThroughLowerBias) {
  const Deck deck = map_deck("0.6", "0.4");
  const Structure s = make_structure(deck);
  const TransportProblem problem = make_transport_problem(deck, s);
  const ElasticTables elastic(deck, s);
  const BeamDevice device{.model = deck,
                          .structure = s,
                          .problem = problem,
                          .elastic = elastic,
                          .contacts = {solve_contact(deck, s, 0), solve_contact(deck, s, s.nx - 1)},
                          .mesh = {.dh_ev = deck.mesh.dh_ev,
                                   .n_kappa = deck.mesh.n_kappa,
                                   .window_ev = deck.mesh.window_ev}};
  const auto kernels = make_beam_kernels(find_device("cpu"));
  SilentProgress silent;
  const BeamSteadyState direct = solve_beam_point(device, deck.points[0], *kernels, silent),
                        led = solve_through_lower_bias(device, deck.points[0], *kernels, silent);
  EXPECT_EQ(led.passed_on.bias.vds_v, 0.4);
  EXPECT_NEAR(led.fluxes.current[16] / direct.fluxes.current[16], 1.0, 1e-4);
}

// No point reaches a tolerance below rounding. The log names each way that was tried, and the
// error is that of the last one.
TEST(BeamStart, FallbacksAreNamed) {
  Deck deck = map_deck("0.3", "[0.1, 0.2]");
  deck.run.tol_v = 1e-30;
  KeptLog log;
  try {
    run_sweep(deck, {.devices = {find_device("cpu")}}, log);
    FAIL();
  } catch (const NotConverged& failure) {
    EXPECT_NE(std::string(failure.what()).find("V_DS = 0.025 V"), std::string::npos)
        << failure.what();
  }
  EXPECT_NE(log.text.find("V_DS = 0.1 V"), std::string::npos) << log.text;
  EXPECT_NE(log.text.find("through points at lower V_DS again"), std::string::npos) << log.text;
}

}  // namespace
}  // namespace quasi::mosfet
