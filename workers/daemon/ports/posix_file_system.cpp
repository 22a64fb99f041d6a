#include "workers/daemon/ports/posix_file_system.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

#include "proto/wire/digest.hpp"
#include "workers/daemon/error.hpp"
#include "workers/files/durable_file.hpp"

namespace quasi {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& doing, const fs::path& path, int error) {
  throw StorageFailure("cannot " + doing + " '" + path.string() + "': " + std::strerror(error));
}

/// Does something with a file; its failure becomes one of the daemon.
template <class Work>
void guarded(Work work) {
  try {
    work();
  } catch (const files::FileFailure& failure) {
    throw StorageFailure(failure.sentence());
  }
}

void write_all(const fs::path& path, int flags, std::string_view bytes) {
  guarded([&] { files::Descriptor(path, flags, "write").write(bytes); });
}

}  // namespace

void PosixFileSystem::make_directory(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail("create directory", path, error.value());
}

void PosixFileSystem::write_file(const fs::path& path, std::string_view bytes) {
  write_all(path, O_WRONLY | O_CREAT | O_TRUNC, bytes);
}

void PosixFileSystem::append_file(const fs::path& path, std::string_view bytes) {
  write_all(path, O_WRONLY | O_CREAT | O_APPEND, bytes);
}

void PosixFileSystem::sync_file(const fs::path& path) {
  guarded([&] { files::sync_file(path); });
}

void PosixFileSystem::sync_directory(const fs::path& path) {
  guarded([&] { files::sync_directory(path); });
}

void PosixFileSystem::rename(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail("rename '" + from.string() + "' to", to, errno);
}

void PosixFileSystem::remove_tree(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(path, error)))
    // Read-only directories (in/) must become writable before their entries can be removed.
    for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error))
      if (entry->is_directory(error) && !entry->is_symlink(error))
        fs::permissions(entry->path(), fs::perms::owner_all, error);
  fs::permissions(path, fs::perms::owner_all, fs::perm_options::add | fs::perm_options::nofollow,
                  error);
  error.clear();
  fs::remove_all(path, error);
  if (error) fail("remove", path, error.value());
}

void PosixFileSystem::link_or_copy(const fs::path& from, const fs::path& to) {
  make_directory(to.parent_path());
  if (link(from.c_str(), to.c_str()) == 0) return;
  if (errno != EXDEV && errno != EPERM && errno != EMLINK) fail("link a file to", to, errno);
  std::error_code error;
  fs::copy_file(from, to, error);
  if (error) fail("copy a file to", to, error.value());
}

void PosixFileSystem::make_read_only(const fs::path& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0 || chmod(path.c_str(), facts.st_mode & ~0222U) != 0)
    fail("make read-only", path, errno);
}

std::optional<std::string> PosixFileSystem::read_file(const fs::path& path) const {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) fail("read", path, EIO);
  return text.str();
}

std::string PosixFileSystem::read_range(const fs::path& path, std::uint64_t offset,
                                        std::uint64_t most) const {
  std::ifstream in(path, std::ios::binary);
  if (!in.seekg(static_cast<std::streamoff>(offset))) return {};
  std::string bytes(most, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(most));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  return bytes;
}

bool PosixFileSystem::exists(const fs::path& path) const {
  std::error_code error;
  return fs::exists(path, error);
}

bool PosixFileSystem::is_directory(const fs::path& path) const {
  std::error_code error;
  return fs::is_directory(fs::symlink_status(path, error));
}

std::uint64_t PosixFileSystem::size_bytes(const fs::path& path) const {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) fail("read the size of", path, error.value());
  return size;
}

std::vector<std::string> PosixFileSystem::list(const fs::path& path) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory) fail("list", path, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

std::string PosixFileSystem::digest(const fs::path& path) const {
  try {
    return wire::digest_file(path).digest;
  } catch (const std::system_error& error) {
    throw StorageFailure(error.what());
  }
}

}  // namespace quasi
