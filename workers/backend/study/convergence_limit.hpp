#pragma once

#include <vector>

/// Begin here: workers/backend/study holds what the convergence studies of all kinds share. A study
/// repeats a calculation with other settings (settings_ladder.hpp), each in its own place
/// (study_runner.hpp), and takes the limit of the results (this file).
namespace quasi {

/// The limit x → 0 of a sequence of calculations, and the error that the sequence itself implies.
struct ConvergenceLimit {
  double value = 0.0;
  double error = 0.0;
  double slope = 0.0;  ///< of the straight line, dy/dx
};

/// Least squares y = value + slope·x through all points, for values that scatter.
/// The error is the larger of the fit's standard error at x = 0 and of the change when the point
/// farthest from 0 is left out: scatter and curvature, neither of them known to a straight line.
/// @throws InvalidInput for fewer than three different x
ConvergenceLimit limit_of_fit(const std::vector<double>& x, const std::vector<double>& y);

/// The straight line through the two finest calculations, for values that depend smoothly on x.
/// The error is the larger of
///   - the change against the line through the second and third finest (curvature),
///   - the step from the finest calculation to the limit, because a finite basis may end first,
/// plus the last step between calculations, because a sequence may turn. With two points the first
/// term is twice the second.
/// @param x  two or more different values > 0, descending
ConvergenceLimit limit_of_finest(const std::vector<double>& x, const std::vector<double>& y);

/// Error of a calculation from one with half its mesh, where the error is of second order:
/// |fine − coarse| / (2² − 1), Richardson's extrapolation. It is too large for higher orders.
double second_order_error(double fine, double coarse);

}  // namespace quasi
