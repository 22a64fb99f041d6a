#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quasi::server {

/// Creates a token for a page or for resuming a watch. Only this store can create it, and it is
/// valid only for the query it was created for. It grants no right by itself.
/// @param purpose  use of the token; a token of another purpose does not open
/// @param binding  the query's serialised form
std::string seal_token(std::string_view key, std::string_view purpose, std::string_view binding,
                       std::string_view payload);

/// Returns the payload, or nothing if the token was sealed with another key, purpose or binding.
std::optional<std::string> open_token(std::string_view key, std::string_view purpose,
                                      std::string_view binding, std::string_view token);

}  // namespace quasi::server
