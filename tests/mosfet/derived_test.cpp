#include "workers/mosfet/solver/sweep/derived.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "workers/units/constants.hpp"

namespace quasi::mosfet {
namespace {

// A linear transistor I = k(V_GS − V_t − V_DS/2): its tangent gives V_t exactly, and g_m = k
// everywhere.
TEST(Derived, ALinearCurveGivesItsThreshold) {
  std::vector<IvPoint> points;
  for (const double vgs : {0.9, 0.5, 0.7, 0.6})
    points.push_back({{vgs, 0.1}, 2000.0 * (vgs - 0.3 - 0.05), 0.0});
  const DerivedFigures figures = derive_figures(points, 0.1);
  ASSERT_EQ(figures.curves.size(), 1u);
  const TransferCurve& curve = figures.curves[0];
  EXPECT_EQ(curve.vgs_v, (std::vector<double>{0.5, 0.6, 0.7, 0.9}));
  for (const double gm : curve.transconductance_s_per_m) EXPECT_NEAR(gm, 2000.0, 1e-9);
  ASSERT_TRUE(curve.threshold_extrapolated_v);
  EXPECT_NEAR(curve.threshold_extrapolated_v->value, 0.3, 1e-12);
  EXPECT_NEAR(curve.threshold_extrapolated_v->error, 0.0, 1e-12);
  EXPECT_FALSE(curve.threshold_v);  // never below 0.1 A/m
  EXPECT_FALSE(figures.dibl_mv_per_v);
}

// Exponentials of 70 mV a decade, shifted by 80 mV per volt of drain. Swing, constant-current
// threshold and DIBL are found exactly, on an uneven grid.
TEST(Derived, ExponentialCurvesGiveSwingAndDibl) {
  std::vector<IvPoint> points;
  const auto current = [](double vgs, double vds) {
    return 0.1 * std::pow(10.0, (vgs - (0.25 - 0.08 * vds)) / 0.070);
  };
  for (const double vds : {0.05, 0.65})
    for (const double vgs : {0.0, 0.1, 0.17, 0.3})
      points.push_back({{vgs, vds}, current(vgs, vds), 0.0});
  const DerivedFigures figures = derive_figures(points, 0.1);
  ASSERT_EQ(figures.curves.size(), 2u);
  EXPECT_NEAR(figures.curves[0].threshold_v->value, 0.25 - 0.08 * 0.05, 1e-12);
  EXPECT_NEAR(figures.curves[1].threshold_v->value, 0.25 - 0.08 * 0.65, 1e-12);
  EXPECT_NEAR(figures.curves[1].swing_mv_per_decade->value, 70.0, 1e-9);
  EXPECT_NEAR(figures.curves[1].swing_mv_per_decade->error, 0.0, 1e-9);
  ASSERT_TRUE(figures.dibl_mv_per_v);
  EXPECT_NEAR(figures.dibl_mv_per_v->value, 80.0, 1e-9);
  EXPECT_NEAR(figures.dibl_mv_per_v->error, 0.0, 1e-9);
}

/// Currents of 70 mV a decade at V_DS = 0.05 and 0.65 V, with an error of 1 % each.
std::vector<IvPoint> exponential_points() {
  std::vector<IvPoint> points;
  for (const double vds : {0.05, 0.65})
    for (const double vgs : {0.0, 0.1, 0.2, 0.3}) {
      const double current = 0.1 * std::pow(10.0, (vgs - (0.25 - 0.08 * vds)) / 0.070);
      points.push_back({.bias = {vgs, vds}, .current_a_per_m = current});
      points.back().error_a_per_m = 0.01 * current;
    }
  return points;
}

// Two currents with errors of 1 % change their logarithmic difference by 2 %.
TEST(Derived, ErrorsOfTheCurrentsBecomeErrorsOfTheFigures) {
  const DerivedFigures figures = derive_figures(exponential_points(), 0.1);
  const double slope_per_v = std::log(10.0) / 0.070;
  EXPECT_NEAR(figures.curves[0].swing_mv_per_decade->error, 70.0 * 0.02 / 0.1 / slope_per_v, 1e-9);
  EXPECT_NEAR(figures.curves[0].threshold_v->error, 0.02 / slope_per_v, 1e-12);
  EXPECT_NEAR(figures.dibl_mv_per_v->error, 1e3 * 2.0 * 0.02 / slope_per_v / 0.6, 1e-9);
}

// The ratio of the ends of a curve has the relative errors of both currents, added.
TEST(Derived, TheRatioOfOnAndOffHasTheErrorsOfBothCurrents) {
  std::vector<IvPoint> points;
  for (const auto& [vgs_v, current, error] :
       {std::tuple{0.5, 2000.0, 20.0}, {0.0, 0.1, 0.002}, {0.2, 5.0, 0.1}})
    points.push_back({.bias = {vgs_v, 0.4}, .current_a_per_m = current, .error_a_per_m = error});
  const auto ratio = derive_figures(points, 0.1).curves.at(0).on_off_ratio;
  ASSERT_TRUE(ratio);
  EXPECT_NEAR(ratio->value, 2e4, 1e-9);
  EXPECT_NEAR(ratio->error / ratio->value, 0.02 + 0.01, 1e-12);
  points[1].is_resolved = false;  // the current at V_GS = 0
  EXPECT_FALSE(derive_figures(points, 0.1).curves.at(0).on_off_ratio);
}

// ln I with a bend: the chord misses the threshold by less than the stated error.
TEST(Derived, TheCurvatureIsPartOfTheErrorOfTheThreshold) {
  std::vector<IvPoint> points;
  const auto log_current = [](double vgs) { return 20.0 * vgs - 15.0 * vgs * vgs; };
  for (const double vgs : {0.1, 0.2, 0.3, 0.4})
    points.push_back({.bias = {vgs, 0.1}, .current_a_per_m = std::exp(log_current(vgs))});
  const double exact = 0.25;
  const DerivedFigures figures = derive_figures(points, std::exp(log_current(exact)));
  const FigureOfMerit& found = *figures.curves[0].threshold_v;
  EXPECT_GT(std::fabs(found.value - exact), 1e-3);
  EXPECT_LE(std::fabs(found.value - exact), 1.001 * found.error);
  EXPECT_GT(figures.curves[0].swing_mv_per_decade->error, 1.0);
}

// Figures need resolved points, and a swing needs points below threshold.
TEST(Derived, UnresolvedPointsAndPointsAboveThresholdDefineNothing) {
  std::vector<IvPoint> points = exponential_points();
  points[3].is_resolved = false;  // V_GS = 0.3 V at the lower V_DS
  DerivedFigures figures = derive_figures(points, 0.1);
  EXPECT_FALSE(figures.curves[0].threshold_v);
  EXPECT_TRUE(figures.curves[0].swing_mv_per_decade);
  EXPECT_TRUE(figures.curves[1].threshold_v);
  EXPECT_FALSE(figures.dibl_mv_per_v);
  points = exponential_points();
  for (IvPoint& point : points) point.is_below_threshold = point.bias.vgs_v < 0.05;
  figures = derive_figures(points, 0.1);
  EXPECT_FALSE(figures.curves[0].swing_mv_per_decade);
  EXPECT_TRUE(figures.curves[0].threshold_v);
  EXPECT_EQ(figures.curves[0].transconductance_s_per_m.size(), 4u);
}

// A parabola of charge: C_gg is second order, hence exact, also at the ends and on an uneven grid.
TEST(Derived, CapacitanceIsTheSlopeOfTheCharge) {
  std::vector<IvPoint> points;
  for (const double vgs : {0.0, 0.1, 0.25, 0.3, 0.6})
    points.push_back({{vgs, 0.2}, 1.0, 0.5 + 2.0 * vgs + 3.0 * vgs * vgs});
  const DerivedFigures figures = derive_figures(points, 0.1);
  const TransferCurve& curve = figures.curves.at(0);
  for (std::size_t k = 0; k < curve.vgs_v.size(); ++k)
    EXPECT_NEAR(curve.gate_capacitance_f_per_m[k] /
                    ((2.0 + 6.0 * curve.vgs_v[k]) * 1e9 * units::kElementaryCharge_c),
                1.0, 1e-12);
}

TEST(Derived, ASinglePointDefinesNothing) {
  const DerivedFigures figures =
      derive_figures({{{0.5, 0.1}, 10.0, 1.0}, {{0.5, 0.4}, 20.0, 1.0}}, 0.1);
  EXPECT_TRUE(figures.curves.empty());
  EXPECT_FALSE(figures.dibl_mv_per_v);
}

}  // namespace
}  // namespace quasi::mosfet
