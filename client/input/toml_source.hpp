#pragma once

#include <toml++/toml.h>
#include <filesystem>
#include <string>
#include <string_view>

namespace quasi::client {

/// Parses TOML text. @throws Failure (kInvalidInput) with "FILE:LINE:COLUMN: reason".
toml::table parse_toml(const std::filesystem::path& file, std::string_view text);

/// The position of a node as "FILE:LINE".
std::string where(const std::filesystem::path& file, const toml::node& node);

}  // namespace quasi::client
