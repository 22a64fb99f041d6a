#pragma once

#include <vector>

namespace quasi::thermal {

/// A limit at x = 0 and the error that the points themselves imply.
struct Extrapolation {
  double value = 0.0;
  /// The larger of the fit's standard error and of the change when the point farthest from 0 is
  /// left out: scatter and curvature, neither of them known to a straight line.
  double error = 0.0;
  double slope = 0.0;
};

/// Least squares y = value + slope·x. @throws InvalidInput for fewer than three different x.
Extrapolation extrapolate_linear(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace quasi::thermal
