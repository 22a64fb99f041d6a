#pragma once

#include <string>

#include "workers/gw/model/mean_field.hpp"

namespace quasi::gw {

/// Gives the states of a crystal with one displaced atom the positions of the crystal at rest, so
/// that they serve as inner states of Σ with W, density and outer states at rest
/// (docs/theory/gw.md 14.5).
/// @param rest  header of RHO
/// @return a sentence that names the atom and its displacement
/// @throws InvalidInput if no atom is displaced, several are, or one by more than 0.2 Bohr
std::string take_rest_crystal(const MeanFieldHeader& rest, Wavefunctions& waves);

}  // namespace quasi::gw
