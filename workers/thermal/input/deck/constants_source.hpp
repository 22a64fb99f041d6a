#pragma once

#include <functional>
#include <optional>

#include "workers/thermal/input/control/control.hpp"
#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/force_constants.hpp"

namespace quasi::thermal {

/// Force constants that are computed from the structure of a deck.
struct ComputedConstants {
  SecondOrder second;                          ///< of the supercell `scell`, (rad/ps)² amu
  std::optional<SparseForceConstants> third;   ///< eV/Å³; empty with onlyharmonic
  std::optional<SparseForceConstants> fourth;  ///< eV/Å⁴; where the deck needs it
};

/// Computes the constants of a deck whose key `forces` names a potential.
using ConstantsSource = std::function<ComputedConstants(const Control&, const Crystal&)>;

}  // namespace quasi::thermal
