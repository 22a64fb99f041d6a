#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace quasi {

/// At most `limit` bytes of a text, as UTF-8: every byte that is none becomes U+FFFD, and no
/// character is cut in two. Messages and JSON quote decks, which may be in another encoding, and a
/// protobuf string that is no UTF-8 is not read at all.
std::string as_utf8(std::string_view text, std::size_t limit);

/// The document, indented; bytes that are no UTF-8 are replaced, never thrown at.
std::string indented(const nlohmann::json& document);

}  // namespace quasi
