#pragma once

#include <vector>

/// Begin here: workers/backend/study holds the parts that the convergence studies of all kinds
/// share. A study repeats a calculation with other settings (settings_ladder.hpp). Each calculation
/// has its own directory (study_runner.hpp). This file computes the limit of the results.
namespace quasi {

/// Limit x → 0 of a sequence of calculations, and the error that the sequence implies.
struct ConvergenceLimit {
  double value = 0.0;
  double error = 0.0;
  double slope = 0.0;  ///< slope of the straight line, dy/dx
};

/// Fits value + slope·x by least squares through all points, for values that scatter. The error is
/// the larger of two numbers: the fit's standard error at x = 0 (scatter), and the change when the
/// point farthest from 0 is left out (curvature). @throws InvalidInput for fewer than three
/// different x
ConvergenceLimit limit_of_fit(const std::vector<double>& x, const std::vector<double>& y);

/// Draws the straight line through the two finest calculations, for values that depend smoothly on
/// x. The error is the larger of two terms plus a third one:
/// - the change against the line through the second and third finest (curvature),
/// - the step from the finest calculation to the limit, because a finite basis may end first,
/// - plus the last step between calculations, because a sequence may change its direction.
/// With two points the first term is twice the second.
/// @param x  two or more different values > 0, descending
ConvergenceLimit limit_of_finest(const std::vector<double>& x, const std::vector<double>& y);

/// Returns the error of a calculation from a second one with half its mesh, if the error is of
/// second order: |fine − coarse| / (2² − 1), Richardson's extrapolation. It is too large for higher
/// orders.
double second_order_error(double fine, double coarse);

}  // namespace quasi
