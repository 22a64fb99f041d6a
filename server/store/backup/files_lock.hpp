#pragma once

#include <memory>
#include <string>

namespace quasi::server {

/// Keeps the files of a data directory while another process reads them. A backup and a check hold
/// the lock for reading; the server removes unreferenced files only while it holds the lock for
/// removal. The kernel gives the lock back when its process ends, so a backup that was killed keeps
/// no file.
class FilesLock {
 public:
  /// Waits until no removal is under way. @throws FileError
  static std::unique_ptr<FilesLock> for_reading(const std::string& data_directory);
  /// @return null while a reader holds the lock. @throws FileError
  static std::unique_ptr<FilesLock> for_removal(const std::string& data_directory);

  ~FilesLock();
  FilesLock(const FilesLock&) = delete;
  FilesLock& operator=(const FilesLock&) = delete;

 private:
  explicit FilesLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace quasi::server
