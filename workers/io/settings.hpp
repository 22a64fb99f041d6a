#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quasi {

/// Marks values that a setting gave in messages: `--set key=value`.
inline constexpr std::string_view kSettingOrigin = "--set ";

/// One `--set key=value` of the user, which overrides one key of a deck. The key is the deck's key,
/// dotted if the deck has tables ("mesh.nx"). The value is written as in the deck.
struct Setting {
  std::string key;
  std::string value;
};

/// Splits "key=value". @throws InvalidInput when there is no '=' or no key.
Setting parse_setting(std::string_view text);

/// Returns the known name with the smallest edit distance, for "did you mean". Returns "" if none
/// is near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// Returns "unknown key 'x' in WHERE; did you mean 'y'?". All decks and configurations use this
/// text.
std::string unknown_key_message(std::string_view key, std::string_view where,
                                const std::vector<std::string>& known);

}  // namespace quasi
