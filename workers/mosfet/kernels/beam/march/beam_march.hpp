#pragma once

#include <vector>

#include "workers/mosfet/kernels/beam/beam_operator.hpp"

namespace quasi::mosfet {

/// Results of march_beam().
struct BeamMarched {
  /// Electrons of one valley that passed the faces i − ½ [n_states][nx+1][n_h], 1/nm.
  std::vector<double> passed;
  double least = 0;           ///< smallest g at the end of a stage
  int first_order_lines = 0;  ///< lines that took face values of first order to keep g positive
};

/// Advances g at fixed levels by a time, in equal steps of Heun's method [shu1988]
/// (docs/theory/mosfet.md 17.10). A step is the mean of the present g and two Euler steps. A line
/// on which an Euler step of third order makes a negative g takes face values of first order, which
/// are positive for steps up to BeamOperator::largest_step_fs(). Every stage conserves electrons:
/// a column changes by what passes its faces. The bits do not depend on the number of threads.
/// @param g  in the layout of BeamOperator
BeamMarched march_beam(const BeamOperator& problem, const BeamScattering& scattering, double dt_fs,
                       int steps, std::vector<double>* g);

}  // namespace quasi::mosfet
