#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quasi::server {

/// Creates a text that carries a payload and a MAC of the key, such as the token for a page, for
/// resuming a watch, or of a session. Only a holder of the key can create it.
/// @param purpose  use of the token; a token of another purpose does not open
/// @param binding  further bytes that must be equal at opening, e.g. the query of a page
std::string seal_token(std::string_view key, std::string_view purpose, std::string_view binding,
                       std::string_view payload);

/// Returns the payload, or nothing if the token was sealed with another key, purpose or binding.
std::optional<std::string> open_token(std::string_view key, std::string_view purpose,
                                      std::string_view binding, std::string_view token);

}  // namespace quasi::server
