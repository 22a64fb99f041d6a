#pragma once

#include <vector>

#include "workers/mosfet/kernels/beam/beam_operator.hpp"

namespace quasi::mosfet {

/// Holds the results of march_beam().
struct BeamMarched {
  /// Electrons of one valley that passed the faces i − ½ towards the drain, per nm of width,
  /// [n_states][nx+1][n_h].
  std::vector<double> passed;
  double least = 0;           ///< smallest g at the end of a stage
  int first_order_lines = 0;  ///< lines that took face values of first order to keep g positive
};

/// Advances g at fixed levels in equal steps of Heun's method [shu1988] (docs/theory/mosfet.md
/// 17.10). A step is the mean of g before it and of g after two Euler steps. Face values are of
/// third order. A line that would get a negative g takes face values of first order, which keep
/// g ≥ 0 for steps up to BeamOperator::largest_step_fs(). Every stage conserves electrons: a
/// column changes by what passes its faces. The bits do not depend on the number of threads.
/// @param dt_fs  length of one step
/// @param steps  number of steps
/// @param g      occupations in the layout of BeamOperator; they are replaced
BeamMarched march_beam(const BeamOperator& problem, const BeamScattering& scattering, double dt_fs,
                       int steps, std::vector<double>* g);

}  // namespace quasi::mosfet
