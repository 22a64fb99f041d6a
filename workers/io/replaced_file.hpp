#pragma once

#include <filesystem>
#include <string>

namespace quasi {

/// Writes a text beside a file, syncs it, and renames it, so that the path holds the whole old text
/// or the whole new one at any moment. @throws StorageError if the text cannot be written
void replace_file(const std::filesystem::path& path, const std::string& text);

}  // namespace quasi
