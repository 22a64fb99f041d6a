#pragma once

#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/model/structure.hpp"

namespace quasi::mosfet {

/// The device of a deck on its mesh. The mesh rule has been applied by the reader.
Structure make_structure(const Deck& deck);

}  // namespace quasi::mosfet
