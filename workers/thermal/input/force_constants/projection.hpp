#pragma once

#include "workers/thermal/model/force_constants.hpp"

namespace quasi::thermal {

/// How far a projection has moved constants.
struct ProjectionChange {
  double relative = 0.0;  ///< norm of the change over the norm of the constants
  double sum_rule = 0.0;  ///< violation of the sum rule that is left, of the largest element
  int sweeps = 0;
};

/// Replaces constants by the nearest ones that keep their values when atoms are exchanged and obey
/// the acoustic sum rule (docs/theory/thermal.md 1.9). It alternates the mean over all exchanges of
/// slots with the subtraction of the mean over the last atom, until the rule holds to 1e-10 of the
/// largest element or 2000 sweeps are done.
ProjectionChange project_rules(SparseForceConstants& constants);

}  // namespace quasi::thermal
