#pragma once

#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/model/structure.hpp"

namespace quasi::mosfet {

/// Puts the device on its mesh. apply_mesh_rule() must have accepted the mesh.
Structure make_structure(const DeviceModel& device, const Mesh& mesh);

/// Puts the device of a deck on the deck's mesh.
inline Structure make_structure(const Deck& deck) { return make_structure(deck, deck.mesh); }

}  // namespace quasi::mosfet
