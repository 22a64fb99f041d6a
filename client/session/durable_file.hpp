#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace quasi::client {

/// Local files that are whole or absent after a crash. Every function throws Failure (kLocalFile)
/// naming the path and the system's reason.

/// Writes a temporary file, syncs it, renames it to `path` and syncs the directory.
void write_durably(const std::filesystem::path& path, std::string_view bytes);

/// Writes a new file that its owner alone can read, and syncs it. A file that is there is refused.
void write_new(const std::filesystem::path& path, std::string_view bytes);

/// Copies a file and syncs the copy. The name of the copy is not synced.
void copy_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Renames a file that was already synced, and syncs the directory.
void publish(const std::filesystem::path& from, const std::filesystem::path& to);

/// Reads the whole file. `limit_bytes` protects the memory from a wrong file name.
std::string read_whole(const std::filesystem::path& path, std::size_t limit_bytes);

/// Creates the directory and its parents. kOwner denies other users access to the directory itself.
enum class Access { kOwner, kUmask };
void make_directory(const std::filesystem::path& path, Access access);

}  // namespace quasi::client
