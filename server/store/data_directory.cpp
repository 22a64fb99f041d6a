#include "server/store/data_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "server/store/file_system.hpp"

namespace quasi::server {
namespace {

/// True for file systems whose bytes lie on another machine, by the magic numbers of statfs(2).
bool is_network(const std::string& path) {
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) throw FileError(errno, "statfs " + path);
  switch (static_cast<std::uint32_t>(info.f_type)) {
    case 0x6969:      // NFS
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2
    case 0x517B:      // SMB
    case 0x0BD00BD0:  // Lustre
    case 0x47504653:  // GPFS
    case 0x19830326:  // BeeGFS
    case 0x00C36400:  // Ceph
    case 0x5346414F:  // AFS
      return true;
    default:
      return false;
  }
}

}  // namespace

DataDirectory::DataDirectory(const std::string& path, bool allow_network_file_system)
    : path_(path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    throw FileError(errno, "cannot make the data directory " + path +
                               " (key data_directory; its parent must exist and be writable)");
  if (!allow_network_file_system && is_network(path))
    throw NetworkFileSystem(
        path +
        " lies on a network file system, where locks and syncs cannot be relied on; choose "
        "a local directory, or set allow_network_file_system = true at your own risk");
  const std::string lock_path = path + "/LOCK";
  lock_ = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_ < 0) throw FileError(errno, "open " + lock_path);
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(lock_);
    if (error == EWOULDBLOCK)
      throw AlreadyRunning("another quasi-server holds " + lock_path +
                           "; stop it first, or choose another data directory");
    throw FileError(error, "lock " + lock_path);
  }
}

DataDirectory::~DataDirectory() { ::close(lock_); }

DataDirectory::Space DataDirectory::space() const {
  struct statvfs info {};
  if (::statvfs(path_.c_str(), &info) != 0) throw FileError(errno, "statvfs " + path_);
  const auto block = static_cast<std::int64_t>(info.f_frsize);
  return {.free_bytes = static_cast<std::int64_t>(info.f_bavail) * block,
          .total_bytes = static_cast<std::int64_t>(info.f_blocks) * block};
}

bool DataDirectory::is_open_to_others() const {
  struct stat info {};
  return ::stat(path_.c_str(), &info) == 0 && (info.st_mode & 0077) != 0;
}

bool DataDirectory::is_in_place() const {
  struct stat held {
  }, found{};
  const auto is_gone = [&](const std::string& path) {
    return ::stat(path.c_str(), &found) != 0 &&
           (errno == ENOENT || errno == ENOTDIR);  // other errors may pass, e.g. on a slow disk
  };
  if (is_gone(database_path()) || is_gone(path_ + "/LOCK")) return false;
  if (::fstat(lock_, &held) != 0 || ::stat((path_ + "/LOCK").c_str(), &found) != 0) return true;
  return held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

}  // namespace quasi::server
