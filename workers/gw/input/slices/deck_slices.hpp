#pragma once

#include <optional>
#include <string>

#include "workers/gw/input/deck.hpp"

// A slice is a range of rows of a matrix between plane waves (docs/theory/gw.md 4.3). Slices let a
// device work on a matrix that exceeds its memory. They serve Σ by the plasmon poles of Hybertsen
// and Louie with the full Coulomb interaction, and no other method.
namespace quasi::gw {

/// Describes a setting of a deck that a calculation in slices does not support.
struct SlicesObstacle {
  std::string setting;  ///< key of the deck and its value, in words
  std::string remedy;   ///< advice in the imperative, such as "use \"static\""
};

/// Returns the first setting of a deck that slices do not support, or nothing if they support all.
std::optional<SlicesObstacle> obstacle_to_slices(const Deck& deck);

/// Returns a sentence for the message that a matrix exceeds a device. It names the setting that
/// keeps the job from slices, and its remedy. The text is empty if slices are allowed.
std::string remedy_of_slices(const Deck& deck);

/// Checks that a deck with epsilon.column_slices > 0 has no setting that slices do not support.
/// @param where  name of the deck for the message
/// @throws InvalidInput with the number of slices, the setting and its remedy
void check_column_slices(const Deck& deck, const std::string& where);

}  // namespace quasi::gw
