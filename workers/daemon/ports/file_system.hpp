#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quasi {

/// The file operations behind everything the daemon must still know after a crash, one call per
/// thing a crash can fall between. Tests give an implementation that stops after the n-th call and
/// forgets what was not synced.
///
/// Every call throws StorageFailure naming path and cause. Safe to call from several threads as
/// long as they work on different paths.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual void make_directory(const std::filesystem::path& path) = 0;  ///< with parents; may exist
  /// Creates or truncates; the bytes may be lost in a crash until sync_file.
  virtual void write_file(const std::filesystem::path& path, std::string_view bytes) = 0;
  virtual void append_file(const std::filesystem::path& path, std::string_view bytes) = 0;
  virtual void sync_file(const std::filesystem::path& path) = 0;
  /// Makes creations, renames and removals in this directory last.
  virtual void sync_directory(const std::filesystem::path& path) = 0;
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual void remove_tree(const std::filesystem::path& path) = 0;  ///< nothing there: nothing done
  /// Puts the complete file `from` at `to` as well: a hard link, or a copy across file systems.
  virtual void place(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  /// Takes away the right to write; for directories, of the directory alone.
  virtual void make_read_only(const std::filesystem::path& path) = 0;

  virtual std::optional<std::string> read_file(const std::filesystem::path& path) const = 0;
  /// At most `most` bytes from `offset` on; "" beyond the end or if there is no such file.
  virtual std::string read_range(const std::filesystem::path& path, std::uint64_t offset,
                                 std::uint64_t most) const = 0;
  virtual bool exists(const std::filesystem::path& path) const = 0;
  virtual bool is_directory(
      const std::filesystem::path& path) const = 0;  ///< a link to one is none
  virtual std::uint64_t size_bytes(const std::filesystem::path& path) const = 0;
  /// Names in a directory, sorted; empty if there is no such directory.
  virtual std::vector<std::string> list(const std::filesystem::path& path) const = 0;
  /// SHA-256 of a file, 64 hexadecimal digits.
  virtual std::string digest(const std::filesystem::path& path) const = 0;
};

/// Either the old bytes or all the new ones are found after a crash; once this returns, the new.
void replace_file_durably(FileSystem& files, const std::filesystem::path& path,
                          std::string_view bytes);

}  // namespace quasi
