#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace quasi::server {

/// A call to the file system failed.
struct FileError : std::runtime_error {
  FileError(int error_, const std::string& what);
  bool is_full() const;
  bool is_missing() const;
  int error;  ///< errno
};

/// The few system calls on which the server's durability depends. Tests replace them to cut the
/// power between any two calls. Paths are absolute or relative to the working directory. All calls
/// throw FileError. Thread-safe; one file by one thread at a time.
class FileSystem {
 public:
  class File {
   public:
    virtual ~File() = default;
    virtual void write(std::uint64_t offset, std::string_view data) = 0;
    /// Reads up to `size` bytes; fewer only at the end of the file.
    virtual std::size_t read(std::uint64_t offset, char* data, std::size_t size) = 0;
    virtual void sync() = 0;
    virtual void truncate(std::uint64_t size) = 0;
    virtual std::uint64_t size() = 0;
  };
  enum class Open { kRead, kReadWrite, kCreate };

  virtual ~FileSystem() = default;
  virtual std::unique_ptr<File> open(const std::string& path, Open mode) = 0;
  virtual bool exists(const std::string& path) = 0;
  /// Creates the directory; its parent must exist. @return false if the directory existed.
  virtual bool make_directory(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// Removes the file. A missing file is no error.
  virtual void remove(const std::string& path) = 0;
  virtual void sync_directory(const std::string& path) = 0;
  /// The names in a directory, in any order.
  virtual std::vector<std::string> list(const std::string& path) = 0;
  virtual void make_read_only(const std::string& path) = 0;
};

/// The file system of the operating system.
FileSystem& system_files();

}  // namespace quasi::server
