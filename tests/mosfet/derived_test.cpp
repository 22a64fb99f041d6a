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
  EXPECT_NEAR(*curve.threshold_extrapolated_v, 0.3, 1e-12);
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
  EXPECT_NEAR(*figures.curves[0].threshold_v, 0.25 - 0.08 * 0.05, 1e-12);
  EXPECT_NEAR(*figures.curves[1].threshold_v, 0.25 - 0.08 * 0.65, 1e-12);
  EXPECT_NEAR(*figures.curves[1].swing_mv_per_decade, 70.0, 1e-9);
  ASSERT_TRUE(figures.dibl_mv_per_v);
  EXPECT_NEAR(*figures.dibl_mv_per_v, 80.0, 1e-9);
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
