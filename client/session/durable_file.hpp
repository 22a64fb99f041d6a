#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace quasi::client {

/// Local files that must be whole or absent after a crash. Every function throws Failure
/// (kLocalFile) naming the path and the system's reason.

/// Writes aside, syncs, renames over `path`, syncs the directory.
void write_durably(const std::filesystem::path& path, std::string_view bytes);

/// Renames a file that was already synced, and syncs the directory.
void publish(const std::filesystem::path& from, const std::filesystem::path& to);

/// The whole file; at most `limit_bytes`, so that a wrong name does not fill the memory.
std::string read_whole(const std::filesystem::path& path, std::size_t limit_bytes);

/// Creates the directory and its parents; with kOwner the directory itself is closed to others.
enum class Access { kOwner, kUmask };
void make_directory(const std::filesystem::path& path, Access access);

}  // namespace quasi::client
