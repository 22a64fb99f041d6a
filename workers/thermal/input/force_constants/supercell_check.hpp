#pragma once

#include <string>

#include "workers/thermal/model/force_constants.hpp"

namespace quasi::thermal {

/// Checks that the constants of a supercell keep their values when two atoms are exchanged, which
/// they do for the right divisions of the supercell alone.
/// @param location  where the user gave 'scell', for messages
/// @throws InvalidInput naming the divisions with the same number of cells that the constants fit,
///         if those of `constants` do not
void check_supercell(const SecondOrder& constants, const std::string& location);

}  // namespace quasi::thermal
