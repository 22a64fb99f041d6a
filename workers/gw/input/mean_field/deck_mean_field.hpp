#pragma once

#include <filesystem>
#include <string>

#include "workers/gw/input/deck.hpp"
#include "workers/io/table_reader.hpp"

// The folder workers/gw/input/mean_field reads the table [meanfield] of a deck. Begin here.
namespace quasi::gw {

/// Reads the table [meanfield] into deck->mean_field.
/// @param directory  folder of the deck, to which its paths are relative
/// @pre deck->compatible and deck->stop_after_epsilon are set
/// @throws InvalidInput with key, value, limit and remedy
void read_mean_field(TableReader reader, const std::filesystem::path& directory, Deck* deck);

/// Checks a deck with `meanfield.wfn_inner` once all tables are read.
/// @throws InvalidInput with the key that excludes it
void check_inner_states(const Deck& deck, const std::string& where);

}  // namespace quasi::gw
