#pragma once

#include <toml++/toml.h>
#include <filesystem>
#include <string>
#include <string_view>

namespace quasi::client {

/// Parses TOML text. @throws Failure (kInvalidInput) with "FILE:LINE:COLUMN: what".
toml::table parse_toml(const std::filesystem::path& file, std::string_view text);

/// "FILE:LINE", where a node was written.
std::string where(const std::filesystem::path& file, const toml::node& node);

}  // namespace quasi::client
