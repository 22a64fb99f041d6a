#pragma once

#include <filesystem>
#include <string>

namespace quasi {

/// Replaces the text of a file. The text is written to a new file, which then takes the name of the
/// old one. At any moment the path therefore has the whole old text or the whole new text.
/// @throws StorageError if the text cannot be written
void replace_file(const std::filesystem::path& path, const std::string& text);

}  // namespace quasi
