#pragma once

#include <span>
#include <string>
#include <vector>

namespace quasi {

/// The settings of a study beside the deck's own one: `listed`, or shares of the own one where the
/// deck lists none. Ascending, each once, all below the own one.
/// @param least  number of settings that the study needs
/// @param key    name of the list in the deck, for the message
/// @throws InvalidInput where one is not below the own one, or fewer than `least` are left
std::vector<double> settings_below(const std::vector<double>& listed, double own,
                                   std::span<const double> shares, std::size_t least,
                                   const std::string& key);

}  // namespace quasi
