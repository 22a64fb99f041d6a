#include "client/session/durable_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "client/failure.hpp"

namespace quasi::client {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& doing, const fs::path& path, int error) {
  std::string remedy;
  if (error == ENOSPC || error == EDQUOT) remedy = "free some space there, then try again";
  if (error == EACCES || error == EROFS || error == EPERM)
    remedy = "check who owns it, or choose another directory";
  if (error == ENOENT) remedy = "check the spelling of the path";
  throw Failure(ExitStatus::kLocalFile,
                "cannot " + doing + " '" + path.string() + "': " + std::strerror(error), remedy);
}

/// Owns one descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

void sync_directory(const fs::path& directory) {
  const Descriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some network file systems cannot sync a directory. The rename itself has been done.
  if (fd.get() < 0 || (::fsync(fd.get()) != 0 && errno != EINVAL))
    fail("sync the directory", directory, errno);
}

fs::path directory_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

void write_durably(const fs::path& path, std::string_view bytes) {
  const fs::path aside = path.string() + ".tmp" + std::to_string(::getpid());
  {
    const Descriptor fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (fd.get() < 0) fail("create", aside, errno);
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t written = ::write(fd.get(), bytes.data() + done, bytes.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const int error = errno;
        ::unlink(aside.c_str());
        fail("write", aside, error);
      }
      done += static_cast<std::size_t>(written);
    }
    if (::fsync(fd.get()) != 0) {
      const int error = errno;
      ::unlink(aside.c_str());
      fail("sync", aside, error);
    }
  }
  publish(aside, path);
}

void publish(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail("rename to", to, errno);
  sync_directory(directory_of(to));
}

std::string read_whole(const fs::path& path, std::size_t limit_bytes) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) fail("read", path, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail("read", path, errno);
  if (S_ISDIR(status.st_mode)) fail("read", path, EISDIR);
  std::string bytes;
  std::string chunk(64 << 10, '\0');
  while (true) {
    const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path, errno);
    if (got == 0) return bytes;
    bytes.append(chunk, 0, static_cast<std::size_t>(got));
    if (bytes.size() > limit_bytes)
      throw Failure(ExitStatus::kInvalidInput,
                    "'" + path.string() + "' is larger than " + std::to_string(limit_bytes) +
                        " bytes, the limit for such a file",
                    "check that this is the right file");
  }
}

void make_directory(const fs::path& path, Access access) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_directory(path, error))
    throw Failure(ExitStatus::kLocalFile, "'" + path.string() + "' is a file, not a directory",
                  "name another directory");
  // Each new name is synced in the directory that holds it. Without that, a power loss could remove
  // the whole tree.
  std::vector<fs::path> missing;
  for (fs::path at = path; !at.empty() && !fs::exists(at, error); at = at.parent_path())
    missing.push_back(at);
  fs::create_directories(path, error);
  if (error) fail("create the directory", path, error.value());
  for (const fs::path& created : missing) sync_directory(directory_of(created));
  if (access == Access::kOwner) fs::permissions(path, fs::perms::owner_all, error);
}

}  // namespace quasi::client
