#pragma once

#include <filesystem>
#include <string>

namespace quasi::thermal {

/// Returns the text of a file, unpacked where its name ends in `.xz` or `.gz`.
/// @throws InvalidInput naming the file if it cannot be opened, is damaged, or holds more than
///         1 GiB of text
std::string read_packed_text(const std::filesystem::path& file);

}  // namespace quasi::thermal
