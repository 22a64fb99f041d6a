#pragma once

#include <vector>

#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/model/problem_4ph.hpp"
#include "workers/thermal/solver/transport/derivative/kappa_derivative.hpp"

namespace quasi::thermal {

/// Four phonons whose rates are in the solution that is differentiated.
struct FourthOrderTerms {
  const Problem4ph& problem;  ///< its points are the irreducible ones
  int temperature = 0;        ///< number of the solution's temperature in the problem
  const SparseForceConstants& constants;
};

/// Returns ∂(Σ_ab part_ab κ_ab)/∂Ψ of every element of the fourth order, [n_blocks][81] in W/m/K
/// per eV/Å⁴, on the CPU (docs/theory/thermal.md 16). Four phonons are in the diagonal of the
/// collision operator, and all their processes are summed. The derivative holds for constants that
/// obey the space group. The bits do not depend on the number of threads.
/// @throws InvalidInput as kappa_derivative does
std::vector<double> fourth_order_derivative(const DerivativeTerms& terms,
                                            const FourthOrderTerms& fourth, KappaSolution solution,
                                            const Mat3& part);

}  // namespace quasi::thermal
