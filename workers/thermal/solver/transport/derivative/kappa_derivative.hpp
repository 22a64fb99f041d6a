#pragma once

#include <vector>

#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

/// Begin here: workers/thermal/solver/transport/derivative differentiates κ by third-order force
/// constants (docs/theory/thermal.md 16).
namespace quasi::thermal {

/// Names the solution whose κ is differentiated.
enum class KappaSolution { kRelaxationTime, kIterated };

/// The solution at one temperature, and what it was computed from.
struct DerivativeTerms {
  const Transport& transport;
  const ThreePhononProblem& problem;  ///< of three phonons, whose rates are exact
  const TemperatureResult& result;
};

/// Returns ∂(Σ_ab part_ab κ_ab)/∂Φ of every element of the third order, [n_blocks][27] in W/m/K per
/// eV/Å³. κ is that of the populations, with the share of degenerate subspaces. Frequencies,
/// velocities and eigenvectors stay as they are.
///
/// The derivative holds for constants that obey the space group: rates are summed over irreducible
/// points alone. The iterated κ needs one more field, which is the solution itself, because the
/// operator is symmetric. The bits do not depend on the number of threads.
/// @param part  weights of the elements of κ; a third of the unit matrix gives the mean of the
/// trace
/// @throws InvalidInput for the iterated κ, if it was not iterated or if its operator is not
///         symmetric
std::vector<double> kappa_derivative(const DerivativeTerms& terms, KappaSolution solution,
                                     const Mat3& part);

/// Returns ∂(Σ_ab part_ab κ_ab)/∂w_row of a rate that adds to the diagonal of the collision
/// operator, [n_rows] in W/m/K ps. All modes of a degenerate set get the mean of theirs, because
/// rates do.
std::vector<double> kappa_by_rate(const DerivativeTerms& terms, KappaSolution solution,
                                  const Mat3& part);

}  // namespace quasi::thermal
