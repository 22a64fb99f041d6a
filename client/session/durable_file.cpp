#include "client/session/durable_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "client/failure.hpp"
#include "workers/files/durable_file.hpp"

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

[[noreturn]] void fail(const files::FileFailure& failure) {
  fail(failure.doing, failure.path, failure.code().value());
}

void sync_directory(const fs::path& directory) {
  try {
    files::sync_directory(directory);
  } catch (const files::FileFailure& failure) {
    const int error = failure.code().value();
    if (error != EINVAL) fail("sync the directory", directory, error);  // see files::publish
  }
}

}  // namespace

void write_durably(const fs::path& path, std::string_view bytes) {
  const fs::path aside = path.string() + ".tmp" + std::to_string(::getpid());
  try {
    files::write_synced(aside, bytes, O_TRUNC);
  } catch (const files::FileFailure& failure) {
    fail(failure);
  }
  publish(aside, path);
}

void write_new(const fs::path& path, std::string_view bytes) {
  try {
    files::write_synced(path, bytes, O_EXCL);
  } catch (const files::FileFailure& failure) {
    fail(failure);
  }
}

void copy_durably(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) fail("copy to", to, error.value());
  try {
    files::sync_file(to);
  } catch (const files::FileFailure& failure) {
    fail(failure);
  }
}

void publish(const fs::path& from, const fs::path& to) {
  try {
    files::publish(from, to);
  } catch (const files::FileFailure& failure) {
    fail(failure);
  }
}

std::string read_whole(const fs::path& path, std::size_t limit_bytes) try {
  const files::Descriptor fd(path, O_RDONLY, "read");
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
} catch (const files::FileFailure& failure) {
  fail(failure);
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
  for (const fs::path& created : missing) sync_directory(files::directory_of(created));
  if (access == Access::kOwner) fs::permissions(path, fs::perms::owner_all, error);
}

}  // namespace quasi::client
