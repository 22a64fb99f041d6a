#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>
#include <vector>

namespace quasi {

/// One key of a deck that has a new name. Both are dotted from the top of the deck:
/// {"mesh.wmax_eV", "mesh.wmax_ev"}. A part that names an array of tables stands for each of them.
/// The new name may lie in another table only if no part of the old one names an array.
struct RenamedKey {
  std::string_view old_name, new_name;
};

/// Moves the value of every old name to its new one, so that readers know new names alone. Where
/// both are given, a setting of the user (--set) wins over the deck.
/// @return one note for each key that was moved; it names the old and the new key
/// @throws InvalidInput where the deck gives both names
std::vector<std::string> rename_keys(toml::table& root, const std::vector<RenamedKey>& renamed,
                                     const std::string& where);

}  // namespace quasi
