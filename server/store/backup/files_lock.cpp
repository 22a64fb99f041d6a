#include "server/store/backup/files_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "server/store/file_system.hpp"

namespace quasi::server {
namespace {

int open_lock(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) throw FileError(errno, "open " + path);
  return descriptor;
}

/// @return false if others hold the lock, which an operation with LOCK_NB does not wait for
bool take(int descriptor, int operation, const std::string& path) {
  while (::flock(descriptor, operation) != 0) {
    const int error = errno;
    if (error == EINTR) continue;
    ::close(descriptor);
    if (error == EWOULDBLOCK) return false;
    throw FileError(error, "lock " + path);
  }
  return true;
}

}  // namespace

std::unique_ptr<FilesLock> FilesLock::for_reading(const std::string& data_directory) {
  const std::string path = data_directory + "/FILES";
  const int descriptor = open_lock(path);
  take(descriptor, LOCK_SH, path);
  return std::unique_ptr<FilesLock>(new FilesLock(descriptor));
}

std::unique_ptr<FilesLock> FilesLock::for_removal(const std::string& data_directory) {
  const std::string path = data_directory + "/FILES";
  int descriptor = -1;
  try {
    descriptor = open_lock(path);
  } catch (const FileError& error) {
    // On a full disk the file cannot be made. Then no other process has it, and space is needed.
    if (!error.is_full()) throw;
    return std::unique_ptr<FilesLock>(new FilesLock(-1));
  }
  if (!take(descriptor, LOCK_EX | LOCK_NB, path)) return nullptr;
  return std::unique_ptr<FilesLock>(new FilesLock(descriptor));
}

FilesLock::~FilesLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace quasi::server
