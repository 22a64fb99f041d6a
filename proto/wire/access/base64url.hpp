#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quasi::wire {

/// The bytes in the alphabet of base64url, without padding.
std::string to_base64url(std::string_view bytes);

/// The bytes of a text in base64url; nothing if a character is not of the alphabet.
std::optional<std::string> from_base64url(std::string_view text);

}  // namespace quasi::wire
