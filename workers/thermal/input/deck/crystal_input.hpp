#pragma once

#include "workers/thermal/input/control/control.hpp"
#include "workers/thermal/model/crystal.hpp"

namespace quasi::thermal {

/// Builds the crystal of a deck; masses and g-factors by `autoisotopes` from natural composition.
/// @throws InvalidInput for a degenerate lattice, coinciding atoms, an element without tabulated
///         composition (naming `masses`, `gfactors` as the remedy) or a mass that is not positive.
Crystal make_crystal(const Control& control);

}  // namespace quasi::thermal
