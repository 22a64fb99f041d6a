#pragma once

#include <string>

#include "workers/mosfet/input/deck.hpp"

namespace quasi::mosfet {

/// Reads the table [small_signal] of a deck whose run is known. Without the table there are no
/// frequencies. @throws InvalidInput if the run has no steady states of the beam scheme, or the
/// frequencies do not increase
SmallSignalSettings read_small_signal(const toml::table* table, const std::string& where,
                                      const Deck& deck);

}  // namespace quasi::mosfet
