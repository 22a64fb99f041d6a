#pragma once

#include <string>

#include "workers/mosfet/input/deck.hpp"

namespace quasi::mosfet {

/// Holds a deck to its mesh: the two interfaces on z nodes, the gate edges on x nodes, to 1e-6 of a
/// cell. With mesh.snap the lengths are rounded to the mesh instead, and deck->notes says so.
/// @throws InvalidInput naming the two nearest admissible sizes.
void apply_mesh_rule(Deck* deck, const std::string& where);

}  // namespace quasi::mosfet
