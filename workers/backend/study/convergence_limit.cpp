#include "workers/backend/study/convergence_limit.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "workers/backend/error.hpp"

namespace quasi {
namespace {

/// Fits a straight line through all points except `left_out`; −1 leaves out none. The error is the
/// standard error of the value at 0. It is 0 if two points leave no degree of freedom.
ConvergenceLimit fit(const std::vector<double>& x, const std::vector<double>& y,
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
  ConvergenceLimit line;
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

ConvergenceLimit limit_of_fit(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<double> different = x;
  std::sort(different.begin(), different.end());
  different.erase(std::unique(different.begin(), different.end()), different.end());
  if (different.size() < 3)
    throw InvalidInput("an extrapolation needs three different points, got " +
                       std::to_string(different.size()));
  ConvergenceLimit all = fit(x, y, -1);
  const auto farthest = std::max_element(
      x.begin(), x.end(), [](double a, double b) { return std::fabs(a) < std::fabs(b); });
  const ConvergenceLimit without = fit(x, y, farthest - x.begin());
  all.error = std::max(all.error, std::fabs(all.value - without.value));
  return all;
}

ConvergenceLimit limit_of_finest(const std::vector<double>& x, const std::vector<double>& y) {
  const std::size_t n = x.size();
  if (n < 2 || y.size() != n) throw std::logic_error("limit_of_finest: two points at least");
  const auto line_at_zero = [&](std::size_t i, std::size_t j) {
    return y[j] - x[j] * (y[j] - y[i]) / (x[j] - x[i]);
  };
  const double value = line_at_zero(n - 2, n - 1), added = std::abs(value - y[n - 1]),
               step = std::abs(y[n - 1] - y[n - 2]);
  const double slope = (y[n - 1] - y[n - 2]) / (x[n - 1] - x[n - 2]);
  const double curvature = n == 2 ? 2.0 * added : std::abs(value - line_at_zero(n - 3, n - 2));
  return {.value = value, .error = std::max(curvature, added) + step, .slope = slope};
}

double second_order_error(double fine, double coarse) {
  constexpr double kSecondOrder = 3.0;  // 2² − 1
  return std::fabs(fine - coarse) / kSecondOrder;
}

}  // namespace quasi
