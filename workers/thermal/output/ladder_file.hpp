#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/solver/calculation/ladder.hpp"

namespace quasi::thermal {

/// Writes κ by level of theory, the frequencies before and after renormalisation and the corrected
/// constants below /ladder, and κ of the renormalised phonons below /kappa.
void write_ladder(const Deck& deck, const Ladder& ladder, H5Writer& out);

/// Returns the summary of a job with renormalised phonons. κ of each temperature is that of its
/// renormalised phonons. "ladder" holds κ by level of theory, and "cases" the summary of each case.
/// @param cases  {name: summary}, as write_case returns them
nlohmann::json summarise_ladder(const Deck& deck, const Ladder& ladder, nlohmann::json cases);

/// Returns the part of the table with frequencies and κ by level of theory.
std::string ladder_table(const nlohmann::json& summary);

}  // namespace quasi::thermal
