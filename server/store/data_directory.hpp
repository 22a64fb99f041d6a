#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace quasi::server {

/// Another server holds the data directory.
struct AlreadyRunning : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// SQLite's locks and WAL are not reliable there.
struct NetworkFileSystem : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The directory that one server owns. Holds an exclusive lock on DATA/LOCK for its lifetime.
class DataDirectory {
 public:
  /// Creates the directory (not its parents) where it is missing.
  /// @throws AlreadyRunning, NetworkFileSystem, FileError.
  DataDirectory(const std::string& path, bool allow_network_file_system);
  ~DataDirectory();
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string database_path() const { return path_ + "/quasi.db"; }
  /// Free bytes for us, and the size of the file system.
  struct Space {
    std::int64_t free_bytes = 0;
    std::int64_t total_bytes = 0;
  };
  Space space() const;
  /// True if its mode lets others than the owner in, as of a directory that was made by hand.
  bool is_open_to_others() const;
  /// Whether LOCK and the database still lie here: false once somebody removed or moved the
  /// directory, or put another in its place. What is written then goes into files that nobody will
  /// find.
  bool in_place() const;

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace quasi::server
