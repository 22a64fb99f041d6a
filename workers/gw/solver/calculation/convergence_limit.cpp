#include "workers/gw/solver/calculation/convergence_limit.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace quasi::gw {

ConvergenceLimit convergence_limit(const std::vector<double>& x, const std::vector<double>& y) {
  const std::size_t n = x.size();
  if (n < 2 || y.size() != n) throw std::logic_error("convergence_limit: two points at least");
  const auto line_at_zero = [&](std::size_t i, std::size_t j) {
    return y[j] - x[j] * (y[j] - y[i]) / (x[j] - x[i]);
  };
  const double value = line_at_zero(n - 2, n - 1), added = std::abs(value - y[n - 1]),
               step = std::abs(y[n - 1] - y[n - 2]);
  if (n == 2) return {value, 2.0 * added + step};
  return {value, std::max(std::abs(value - line_at_zero(n - 3, n - 2)), added) + step};
}

}  // namespace quasi::gw
