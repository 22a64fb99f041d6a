#pragma once

#include <string>

#include "workers/engine/task.hpp"

namespace quasi {

/// Reads what a result keeps of its inputs: the settings, a digest of each file of the deck up to
/// 256 MiB, and the text of each file up to 64 KiB.
///
/// A deck or file that cannot be read gives an empty record or no entry, because the kind's own
/// reader says what is wrong with it.
InputRecord read_input_record(const std::string& kind, const DeckSource& deck);

}  // namespace quasi
