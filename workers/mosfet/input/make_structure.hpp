#pragma once

#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/model/structure.hpp"

namespace quasi::mosfet {

/// The device on its mesh. The mesh rule must hold (apply_mesh_rule()).
Structure make_structure(const DeviceModel& device, const Mesh& mesh);

/// The device of a deck on the deck's mesh.
inline Structure make_structure(const Deck& deck) { return make_structure(deck, deck.mesh); }

}  // namespace quasi::mosfet
