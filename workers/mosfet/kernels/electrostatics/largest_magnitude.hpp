#pragma once

#include <cmath>
#include <vector>

namespace quasi::mosfet {

/// max |v|; not a number if any v is none. std::max would drop it, and a broken iteration would
/// pass for a converged one.
inline double largest_magnitude(const std::vector<double>& values) {
  double largest = 0.0;
  for (const double value : values)
    if (!(std::fabs(value) <= largest)) largest = std::isnan(largest) ? largest : std::fabs(value);
  return largest;
}

}  // namespace quasi::mosfet
