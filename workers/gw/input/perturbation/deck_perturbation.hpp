#pragma once

#include <filesystem>
#include <string>

#include "workers/gw/input/deck.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {

/// Begin here: reads the table [perturbation] of a deck, and the phonon modes that it names.
/// @param directory  of the deck, for relative paths
/// @throws InvalidInput
void read_perturbation(TableReader reader, const std::filesystem::path& directory, Deck* deck);

/// Refuses settings of other tables that have no first order of Σ.
/// @throws InvalidInput
void check_perturbation(const Deck& deck, const std::string& where);

}  // namespace quasi::gw
