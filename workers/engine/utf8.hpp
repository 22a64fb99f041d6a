#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace quasi {

/// Returns at most `limit` bytes of a text as UTF-8. An invalid byte becomes U+FFFD, and no
/// character is cut in two. Messages and JSON quote decks, which may have another encoding, and
/// protobuf refuses strings that are not UTF-8.
std::string as_utf8(std::string_view text, std::size_t limit);

/// Formats the document with indentation. Bytes that are not UTF-8 are replaced and cause no
/// exception.
std::string indented(const nlohmann::json& document);

}  // namespace quasi
