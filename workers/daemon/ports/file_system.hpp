#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quasi {

/// File operations of everything that the daemon must know after a crash. There is one call for
/// each step that a crash can interrupt. Tests provide an implementation that stops after the n-th
/// call and forgets unsynced bytes.
///
/// Every call throws StorageFailure naming path and cause. Several threads may call it for
/// different paths.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// Makes a directory and its parents. It may exist already.
  virtual void make_directory(const std::filesystem::path& path) = 0;
  /// Creates or truncates the file. The bytes may be lost in a crash until sync_file().
  virtual void write_file(const std::filesystem::path& path, std::string_view bytes) = 0;
  /// Appends bytes. They may be lost in a crash until sync_file().
  virtual void append_file(const std::filesystem::path& path, std::string_view bytes) = 0;
  /// Syncs the file, so that its bytes survive a crash.
  virtual void sync_file(const std::filesystem::path& path) = 0;
  /// Syncs the directory, so that creations, renames and removals in it survive a crash.
  virtual void sync_directory(const std::filesystem::path& path) = 0;
  /// Renames a file or directory. An existing file at `to` is replaced.
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  /// Removes a directory tree. Does nothing if the path does not exist.
  virtual void remove_tree(const std::filesystem::path& path) = 0;
  /// Puts the complete file `from` at `to` as well, as a hard link or as a copy across file
  /// systems.
  virtual void link_or_copy(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  /// Removes the right to write. For a directory this concerns the directory alone.
  virtual void make_read_only(const std::filesystem::path& path) = 0;

  /// Returns the bytes of a file, or nothing if it does not exist.
  virtual std::optional<std::string> read_file(const std::filesystem::path& path) const = 0;
  /// Returns at most `most` bytes from `offset` on. Returns "" beyond the end and for a missing
  /// file.
  virtual std::string read_range(const std::filesystem::path& path, std::uint64_t offset,
                                 std::uint64_t most) const = 0;
  virtual bool exists(const std::filesystem::path& path) const = 0;
  virtual bool is_directory(
      const std::filesystem::path& path) const = 0;  ///< a link to a file does not count
  virtual std::uint64_t size_bytes(const std::filesystem::path& path) const = 0;
  /// Returns the names in a directory, sorted; none if the directory does not exist.
  virtual std::vector<std::string> list(const std::filesystem::path& path) const = 0;
  /// Returns the SHA-256 of a file as 64 hexadecimal digits.
  virtual std::string digest(const std::filesystem::path& path) const = 0;
};

/// Replaces a file. After a crash it holds either all old or all new bytes; once this returns, the
/// new bytes.
void replace_file_durably(FileSystem& files, const std::filesystem::path& path,
                          std::string_view bytes);

}  // namespace quasi
