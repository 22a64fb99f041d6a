#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quasi::server {

/// Page and resume tokens: a text that only this store can have written, and that fits only the
/// query it was made for. Grants nothing by itself.
/// @param purpose  what the token is for; a token of another purpose does not open
/// @param binding  the query's serialised form
std::string seal_token(std::string_view key, std::string_view purpose, std::string_view binding,
                       std::string_view payload);

/// The payload, or nothing if the token was not sealed with the same key, purpose and binding.
std::optional<std::string> open_token(std::string_view key, std::string_view purpose,
                                      std::string_view binding, std::string_view token);

}  // namespace quasi::server
