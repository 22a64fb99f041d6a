// Compares ballistic transistors with nanoMOS 2.5 [ren2001], an outside program. Its README says
// which figures are comparable and how closely.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/support/reference_data.hpp"
#include "workers/backend/device/device.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"

namespace quasi::mosfet {
namespace {

using Bias = std::pair<double, double>;  // V_GS, V_DS

/// Currents of the model `clbte`, A/m: over the barrier, without tunnelling.
std::map<Bias, double> ballistic_currents(const std::string& device) {
  std::ifstream in(test::reference_dir() / "device/nanomos/iv.csv");
  std::map<Bias, double> currents;
  const std::string begin = device + ",clbte,";
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, begin.size(), begin) != 0) continue;
    std::istringstream fields(line.substr(begin.size()));
    double vgs_v = 0.0, vds_v = 0.0, current = 0.0;
    char comma = 0;
    fields >> vgs_v >> comma >> vds_v >> comma >> current;
    currents[{vgs_v, vds_v}] = current;
  }
  return currents;
}

/// Ballistic points of the deck that matches nanoMOS. Inflow with a fixed E_F over a floating band
/// edge is that of nanoMOS.
std::map<Bias, PointResult> solve(const std::string& device, const std::string& vgs,
                                  const std::string& vds, const std::vector<Setting>& mesh) {
  std::vector<Setting> settings{{"run.mode", "steady"},
                                {"run.scheme", "beam"},
                                {"run.transport", "ballistic"},
                                {"contact.inflow", "fixed"},
                                {"mesh.subbands", "1"},
                                {"bias.vgs", vgs},
                                {"bias.vds", vds}};
  settings.insert(settings.end(), mesh.begin(), mesh.end());
  const Deck deck =
      read_deck(test::reference_dir() / "device/nanomos" / ("quasi_" + device + ".toml"), settings);
  SilentProgress silent;
  std::map<Bias, PointResult> found;
  for (PointResult& point : run_sweep(deck, {.devices = {find_device("cpu")}}, silent))
    found.emplace(Bias{point.bias.vgs_v, point.bias.vds_v}, std::move(point));
  return found;
}

/// V_GS at 0.1 A/m, log-linear between two points.
double threshold_v(double low_v, double low, double high_v, double high) {
  return low_v + (high_v - low_v) * std::log(0.1 / low) / std::log(high / low);
}

void compare(const std::map<Bias, PointResult>& points, const std::map<Bias, double>& reference,
             double bound) {
  for (const auto& [bias, point] : points) {
    SCOPED_TRACE(std::to_string(bias.first) + " " + std::to_string(bias.second));
    EXPECT_EQ(point.status, PointStatus::kConverged);
    EXPECT_NEAR(point.numbers.at("current_a_per_m") / reference.at(bias), 1.0, bound);
  }
}

// Swing between V_GS 0 and 0.1 V, and DIBL at 0.1 A/m between V_GS 0.1 and 0.2 V.
void compare_figures(const std::map<Bias, PointResult>& points,
                     const std::map<Bias, double>& reference, const std::vector<double>& drains) {
  const auto own = [&](double vgs_v, double vds_v) {
    return points.at({vgs_v, vds_v}).numbers.at("current_a_per_m");
  };
  const auto other = [&](double vgs_v, double vds_v) { return reference.at({vgs_v, vds_v}); };
  const auto swing = [](const auto& current, double vds_v) {
    return 100.0 / std::log10(current(0.1, vds_v) / current(0.0, vds_v));
  };
  const auto threshold = [](const auto& current, double vds_v) {
    return threshold_v(0.1, current(0.1, vds_v), 0.2, current(0.2, vds_v));
  };
  for (const double vds_v : drains) {
    EXPECT_NEAR(swing(own, vds_v), swing(other, vds_v), 1.0) << vds_v;
    const double fall_v = vds_v - drains.front();
    if (!(fall_v > 0.0)) continue;
    const auto dibl = [&](const auto& current) {
      return 1e3 * (threshold(current, drains.front()) - threshold(current, vds_v)) / fall_v;
    };
    EXPECT_NEAR(dibl(own), dibl(other), 3.0) << vds_v;
  }
}

// Nodes of nanoMOS in x and z. Below threshold the current follows the barrier, so that coarse
// cells of H and κ suffice. 3 %, 1 mV per decade and 3 mV/V are the bounds of the README.
TEST(NanoMos, BallisticCurrentsBelowThreshold) {
  QUASI_NEED_REFERENCE("device/nanomos/iv.csv");
  const auto reference = ballistic_currents("10nm");
  const auto points = solve("10nm", "[0.0, 0.1, 0.2]", "[0.05, 0.4]",
                            {{"mesh.nx", "121"}, {"mesh.dh_ev", "0.0125"}, {"mesh.nkappa", "8"}});
  compare(points, reference, 0.03);
  compare_figures(points, reference, {0.05, 0.4});
}

// All points of nanoMOS. Above threshold cells of κ decide: 8 of them give 7 % less current.
TEST(NanoMos, EveryBallisticPointOfTheTenNanometreDevice) {
  QUASI_NEED_REFERENCE("device/nanomos/iv.csv");
  if (std::getenv("QUASI_NIGHTLY") == nullptr) GTEST_SKIP() << "set QUASI_NIGHTLY=1 to run it";
  const auto reference = ballistic_currents("10nm");
  const auto points = solve("10nm", "[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]", "[0.05, 0.4, 0.6]",
                            {{"mesh.nx", "121"}, {"mesh.nkappa", "32"}});
  ASSERT_EQ(points.size(), 21u);
  compare(points, reference, 0.03);
  compare_figures(points, reference, {0.05, 0.4, 0.6});
}

}  // namespace
}  // namespace quasi::mosfet
