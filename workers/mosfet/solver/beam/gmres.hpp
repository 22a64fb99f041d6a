#pragma once

#include <functional>
#include <vector>

namespace quasi::mosfet {

/// Result of a GMRES iteration.
struct GmresReport {
  int products = 0;     ///< applications of the operator
  double residual = 0;  ///< ‖b − A x‖₂/‖b‖₂ of the recurrence
  bool converged = false;
};

/// Solves A x = b by GMRES with restarts (modified Gram–Schmidt, Givens rotations) [saad1986].
/// @param x  in: start, out: solution
GmresReport gmres(const std::function<std::vector<double>(const std::vector<double>&)>& apply,
                  const std::vector<double>& b, double tolerance, int max_products,
                  std::vector<double>* x);

}  // namespace quasi::mosfet
