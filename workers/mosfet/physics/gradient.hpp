#pragma once

#include <cstdint>

#include "workers/backend/host_device.hpp"

namespace quasi::mosfet {

/// Returns ∂ε/∂x at node i of a row of nx ≥ 5 values (docs/theory/mosfet.md 5.3): fourth-order
/// central, second-order central next to the ends, second-order one-sided at them.
QUASI_HD inline double gradient_at(const double* e, int i, int nx, double dx) {
  if (i == 0) return (-3.0 * e[0] + 4.0 * e[1] - e[2]) / (2.0 * dx);
  if (i == nx - 1) return (3.0 * e[nx - 1] - 4.0 * e[nx - 2] + e[nx - 3]) / (2.0 * dx);
  if (i == 1 || i == nx - 2) return (e[i + 1] - e[i - 1]) / (2.0 * dx);
  return (e[i - 2] - 8.0 * e[i - 1] + 8.0 * e[i + 1] - e[i + 2]) / (12.0 * dx);
}

}  // namespace quasi::mosfet
