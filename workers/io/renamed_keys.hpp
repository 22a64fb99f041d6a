#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>
#include <vector>

namespace quasi {

/// One key of a deck that has a new name. Both names are dotted paths from the top of the deck,
/// e.g. {"mesh.wmax_eV", "mesh.wmax_ev"}. A part that names an array of tables stands for each of
/// them. The new name may lie in another table only if no part of the old name is an array.
struct RenamedKey {
  std::string_view old_name, new_name;
};

/// Moves the value of every old name to its new name, so that readers know new names alone. If both
/// are given, a setting of the user (--set) overrides the deck. @return one note for each key that
/// was moved, with the old and the new key @throws InvalidInput if the deck gives both names
std::vector<std::string> rename_keys(toml::table& root, const std::vector<RenamedKey>& renamed,
                                     const std::string& where);

}  // namespace quasi
