#pragma once

#include <string>

#include "workers/gw/input/deck.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {

/// Reads the table [perturbation] of a deck.
void read_perturbation(TableReader reader, Deck* deck);

/// Refuses settings of other tables that have no first order of Σ.
/// @throws InvalidInput
void check_perturbation(const Deck& deck, const std::string& where);

}  // namespace quasi::gw
