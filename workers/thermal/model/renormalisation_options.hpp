#pragma once

#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// Options of the phonons that are renormalised at every temperature (docs/theory/thermal.md 14).
struct RenormalisationOptions {
  bool enabled = false;
  Index3 mesh{1, 1, 1};      ///< divisions of the Γ-centred mesh that samples the displacements
  double tolerance = 1e-10;  ///< largest change of an element, over the largest element of Φ₂
  int max_iterations = 400;
  bool bubble = false;  ///< the static bubble of the third order is added
};

}  // namespace quasi::thermal
