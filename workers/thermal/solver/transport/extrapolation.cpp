#include "workers/thermal/solver/transport/extrapolation.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"

namespace quasi::thermal {
namespace {

/// Straight line through the points except `left_out` (−1: all); the error is the fit's standard
/// error of the value at 0, nothing where two points leave no degree of freedom.
Extrapolation fit(const std::vector<double>& x, const std::vector<double>& y,
                  std::ptrdiff_t left_out) {
  double n = 0.0, sx = 0.0, sy = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (static_cast<std::ptrdiff_t>(i) == left_out) continue;
    n += 1.0;
    sx += x[i];
    sy += y[i];
  }
  double sxx = 0.0, sxy = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (static_cast<std::ptrdiff_t>(i) == left_out) continue;
    sxx += (x[i] - sx / n) * (x[i] - sx / n);
    sxy += (x[i] - sx / n) * (y[i] - sy / n);
  }
  Extrapolation line;
  line.slope = sxy / sxx;
  line.value = sy / n - line.slope * sx / n;
  double residual = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (static_cast<std::ptrdiff_t>(i) != left_out)
      residual += std::pow(y[i] - line.value - line.slope * x[i], 2);
  if (n > 2.0) line.error = std::sqrt(residual / (n - 2.0) * (1.0 / n + sx * sx / (n * n * sxx)));
  return line;
}

}  // namespace

Extrapolation extrapolate_linear(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<double> different = x;
  std::sort(different.begin(), different.end());
  different.erase(std::unique(different.begin(), different.end()), different.end());
  if (different.size() < 3)
    throw InvalidInput("an extrapolation needs three different points, got " +
                       std::to_string(different.size()));
  Extrapolation all = fit(x, y, -1);
  const auto farthest = std::max_element(
      x.begin(), x.end(), [](double a, double b) { return std::fabs(a) < std::fabs(b); });
  const Extrapolation without = fit(x, y, farthest - x.begin());
  all.error = std::max(all.error, std::fabs(all.value - without.value));
  return all;
}

}  // namespace quasi::thermal
