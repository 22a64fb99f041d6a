#pragma once

#include <optional>
#include <string>

#include "workers/gw/input/deck.hpp"

namespace quasi::gw {

/// A setting with which matrices between plane waves cannot be cut into slices.
struct SlicesObstacle {
  std::string setting;
  std::string remedy;
};

/// Returns the first setting of a deck that slices do not serve, or nothing. They serve Σ by
/// plasmon poles of Hybertsen and Louie with the full Coulomb interaction.
std::optional<SlicesObstacle> obstacle_to_slices(const Deck& deck);

/// Returns the sentence of a refusal that says why slices are no remedy; empty if they are one.
std::string remedy_of_slices(const Deck& deck);

/// Checks epsilon.column_slices against the other settings.
/// @throws InvalidInput naming the setting that slices do not serve
void check_column_slices(const Deck& deck, const std::string& where);

}  // namespace quasi::gw
