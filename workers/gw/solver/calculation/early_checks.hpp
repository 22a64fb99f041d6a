#pragma once

#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {

/// Ends a job of a built-in crystal before its states are calculated, if a device cannot hold the
/// matrices between plane waves. The plan makes this check for every job, after the states.
/// @throws OutOfMemory as require_room() does
void require_room_of_crystal(const Deck& deck, const Workplace& place);

}  // namespace quasi::gw
