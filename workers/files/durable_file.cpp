#include "workers/files/durable_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace quasi::files {

namespace fs = std::filesystem;

FileFailure::FileFailure(int error, std::string doing_, fs::path path_)
    : std::system_error(error, std::generic_category(), "cannot " + doing_ + " " + path_.string()),
      doing(std::move(doing_)),
      path(std::move(path_)) {}

std::string FileFailure::sentence() const {
  return "cannot " + doing + " '" + path.string() + "': " + std::strerror(code().value());
}

Descriptor::Descriptor(const fs::path& path, int flags, const char* doing, unsigned mode)
    : path_(path), descriptor_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {
  if (descriptor_ < 0) throw FileFailure(errno, doing, path);
}

Descriptor::~Descriptor() { ::close(descriptor_); }

void Descriptor::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw FileFailure(errno, "write", path_);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Descriptor::sync() {
  if (::fsync(descriptor_) != 0) throw FileFailure(errno, "sync", path_);
}

void Descriptor::sync_data() {
  if (::fdatasync(descriptor_) != 0) throw FileFailure(errno, "sync", path_);
}

void sync_file(const fs::path& path) { Descriptor(path, O_RDONLY, "sync").sync(); }

void sync_directory(const fs::path& path) {
  Descriptor(path, O_RDONLY | O_DIRECTORY, "sync").sync();
}

fs::path directory_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void publish(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw FileFailure(errno, "rename to", to);
  try {
    sync_directory(directory_of(to));
  } catch (const FileFailure& failure) {
    if (failure.code().value() != EINVAL) throw;
  }
}

void write_synced(const fs::path& path, std::string_view bytes, int flags) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_NOFOLLOW | flags, "create");
  try {
    file.write(bytes);
    file.sync();
  } catch (const FileFailure&) {
    ::unlink(path.c_str());
    throw;
  }
}

}  // namespace quasi::files
