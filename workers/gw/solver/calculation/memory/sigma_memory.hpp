#pragma once

#include <algorithm>

#include "workers/gw/solver/calculation/plan.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {

/// Holds the bytes of a device in the steps of Σ.
struct SigmaBytes {
  double exchange = 0.0;  ///< before W is made
  double matrices = 0.0;  ///< A and ω̃ or a slice of them, and the matrix of a quadratic form
  double products = 0.0;  ///< inner bands on the box and their products with the outer states
  double peak() const { return std::max(exchange, matrices + products); }
};
/// Returns these bytes for the diagonal Σ of a plan.
/// @param n_q  number of q-points at which ε is known
SigmaBytes bytes_of_sigma(const MeanField& field, const Plan& plan, double n_q);

}  // namespace quasi::gw
