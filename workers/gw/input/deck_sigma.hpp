#pragma once

#include "workers/gw/input/deck.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {

/// Largest number of bands that a deck may name.
inline constexpr int kMaxBandCount = 10'000'000;

/// Reads the table [sigma]; the table [meanfield] must have been read.
/// @throws InvalidInput with key, value, limit and remedy
void read_sigma(TableReader reader, Deck* deck);

}  // namespace quasi::gw
