#pragma once

#include <string>

#include "workers/gw/input/deck.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {

/// Reads the table [pseudobands] of a deck. @pre [meanfield] is read
void read_pseudobands(TableReader reader, Deck* deck);

/// Refuses settings of other tables that need states which pseudobands replace.
/// @throws InvalidInput
void check_pseudobands(const Deck& deck, const std::string& where);

}  // namespace quasi::gw
