#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

/// Writes files so that a crash leaves them whole or absent: write, sync, rename. All programs do
/// it here. The functions need no other library, so that each program may use them, and the callers
/// turn FileFailure into errors of their own.
namespace quasi::files {

/// A call to the system failed. what() is "cannot DOING 'PATH': REASON".
struct FileFailure : std::system_error {
  FileFailure(int error, std::string doing, std::filesystem::path path);
  /// what() without the name of the error that std::system_error adds.
  std::string sentence() const;
  std::string doing;  ///< a verb, e.g. "sync"
  std::filesystem::path path;
};

/// Owns one open file.
class Descriptor {
 public:
  /// Opens a file with flags of open(2); the file is closed on exec. A new file has `mode`.
  /// @throws FileFailure, with `doing` as its verb
  Descriptor(const std::filesystem::path& path, int flags, const char* doing = "open",
             unsigned mode = 0600);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return descriptor_; }
  /// Writes all bytes at the place of the file. @throws FileFailure
  void write(std::string_view bytes);
  /// Returns when bytes and attributes are on the disk. @throws FileFailure
  void sync();
  /// Returns when the bytes, and the size that they need, are on the disk. @throws FileFailure
  void sync_data();

 private:
  std::filesystem::path path_;
  int descriptor_;
};

/// Syncs a file that is there. @throws FileFailure
void sync_file(const std::filesystem::path& path);

/// Syncs the names in a directory. @throws FileFailure
void sync_directory(const std::filesystem::path& path);

/// Renames a file whose bytes are synced, and syncs the directory that holds its new name. Some
/// network file systems cannot sync a directory (EINVAL); the rename itself has been done there.
/// @throws FileFailure
void publish(const std::filesystem::path& from, const std::filesystem::path& to);

/// Makes a file with these bytes for its owner alone, and syncs them. The name is not synced. A
/// file that cannot be completed is removed. @param flags  O_EXCL refuses a file that is there,
/// O_TRUNC replaces its bytes. @throws FileFailure
void write_synced(const std::filesystem::path& path, std::string_view bytes, int flags);

/// The directory that holds a name: "." for a name alone.
std::filesystem::path directory_of(const std::filesystem::path& path);

}  // namespace quasi::files
