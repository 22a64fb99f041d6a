#pragma once

#include <span>
#include <string>
#include <vector>

namespace quasi {

/// Returns the settings of a study beside the deck's own value: `listed`, or fixed shares of the
/// deck's value if nothing is listed. They ascend, differ from each other and lie below the deck's
/// value.
/// @param least  number of settings that the study needs
/// @param key    name of the list in the deck, for the message
/// @throws InvalidInput if a setting is not below the deck's value, or if fewer than `least` are
/// left
std::vector<double> settings_below(const std::vector<double>& listed, double own,
                                   std::span<const double> shares, std::size_t least,
                                   const std::string& key);

}  // namespace quasi
