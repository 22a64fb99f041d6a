#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace quasi::server {

/// Another server holds the data directory.
struct AlreadyRunning : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The data directory lies on a network file system, where SQLite's locks and write-ahead log are
/// not reliable.
struct NetworkFileSystem : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The directory that one server owns. The object holds an exclusive lock on DATA/LOCK for its
/// lifetime.
class DataDirectory {
 public:
  /// Creates the directory if it is missing, but not its parents.
  /// @throws AlreadyRunning, NetworkFileSystem, FileError.
  DataDirectory(const std::string& path, bool allow_network_file_system);
  ~DataDirectory();
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string database_path() const { return path_ + "/quasi.db"; }
  /// Free bytes for the server's user, and the size of the file system.
  struct Space {
    std::int64_t free_bytes = 0;
    std::int64_t total_bytes = 0;
  };
  Space space() const;
  /// True if the mode of the directory lets other users in, e.g. because it was made by hand.
  bool is_open_to_others() const;
  /// True if LOCK and the database still lie in the directory. It is false after the directory was
  /// removed, moved or replaced: then later writes would go to files that no path reaches.
  bool is_in_place() const;

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace quasi::server
