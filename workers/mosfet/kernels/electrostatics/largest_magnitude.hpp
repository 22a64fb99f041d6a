#pragma once

#include <cmath>
#include <vector>

namespace quasi::mosfet {

/// Returns max |v|, or NaN if any v is NaN. std::max would drop a NaN, and a broken iteration would
/// count as converged.
inline double largest_magnitude(const std::vector<double>& values) {
  double largest = 0.0;
  for (const double value : values)
    if (!(std::fabs(value) <= largest)) largest = std::isnan(largest) ? largest : std::fabs(value);
  return largest;
}

}  // namespace quasi::mosfet
