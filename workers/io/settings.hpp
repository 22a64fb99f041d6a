#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quasi {

/// Begins the place of a value in messages where a setting gave it: `--set key=value`.
inline constexpr std::string_view kSettingPlace = "--set ";

/// One `--set key=value` of the user: overrides one key of a deck. The key is the deck's own,
/// dotted where the deck has tables ("mesh.nx"); the value is written as in the deck.
struct Setting {
  std::string key;
  std::string value;
};

/// Splits "key=value". @throws InvalidInput when there is no '=' or no key.
Setting parse_setting(std::string_view text);

/// The known name with the smallest edit distance, for "did you mean"; "" if none is near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// "unknown key 'x' in WHERE; did you mean 'y'?" — the one wording for every deck and
/// configuration.
std::string unknown_key_message(std::string_view key, std::string_view where,
                                const std::vector<std::string>& known);

}  // namespace quasi
