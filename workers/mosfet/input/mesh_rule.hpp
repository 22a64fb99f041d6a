#pragma once

#include <string>

#include "workers/mosfet/input/deck.hpp"

namespace quasi::mosfet {

/// Checks that the two interfaces lie on z nodes and the gate edges on x nodes, to 1e-6 of a cell.
/// With mesh.snap the lengths are rounded to the mesh instead, and deck->notes reports it. @throws
/// InvalidInput naming, for each axis, the lengths in cells and the two nearest admissible sizes.
void apply_mesh_rule(Deck* deck, const std::string& where);

}  // namespace quasi::mosfet
