#include "tests/service/files/journal_disk.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <vector>

namespace quasi::server::test {
namespace {

namespace fs = std::filesystem;

JournalDisk* active = nullptr;

std::string path_of(int descriptor) {
  std::array<char, 4'096> text{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string();
}

/// Makes a change on the disk first. @return false with errno if the power is off
template <class Change>
bool is_done(const fs::path& path, Change change) {
  const std::string name = active == nullptr ? std::string() : active->name_of(path);
  if (name.empty()) return true;
  try {
    change(active->disk(), name);
    return true;
  } catch (const FileError& error) {
    errno = error.error;
    return false;
  }
}

}  // namespace

JournalDisk::JournalDisk(PowerCutDisk& disk, fs::path real, std::string name)
    : disk_(disk), real_(std::move(real)), name_(std::move(name)) {
  active = this;
}

JournalDisk::~JournalDisk() { active = nullptr; }

std::string JournalDisk::name_of(const fs::path& path) const {
  const std::string relative = path.lexically_relative(real_).string();
  if (relative.empty() || relative.starts_with("..")) return {};
  return relative == "." ? name_ : name_ + "/" + relative;
}

void JournalDisk::restore() {
  active = nullptr;
  for (const fs::directory_entry& entry : fs::directory_iterator(real_)) fs::remove_all(entry);
  restore_folder(name_, real_);
  active = this;
}

void JournalDisk::restore_folder(const std::string& name, const fs::path& real) {
  for (const std::string& entry : disk_.list(name)) {
    const std::string path = name + "/" + entry;
    const auto node = disk_.find(path);
    if (node->directory) {
      fs::create_directory(real / entry);
      restore_folder(path, real / entry);
    } else {
      std::ofstream(real / entry, std::ios::binary) << node->bytes;
    }
  }
}

}  // namespace quasi::server::test

namespace {
using quasi::server::test::is_done;
using quasi::server::test::path_of;
using quasi::server::test::PowerCutDisk;
}  // namespace

// The C library declares these functions; a definition in the program replaces them.
extern "C" {

ssize_t write(int descriptor, const void* bytes, std::size_t size) {
  const off_t offset = ::lseek(descriptor, 0, SEEK_CUR);
  const bool done = is_done(path_of(descriptor), [&](PowerCutDisk& disk, const std::string& name) {
    const auto file = disk.find(name) ? disk.find(name) : disk.create(name);
    disk.write(*file, static_cast<std::uint64_t>(offset), {static_cast<const char*>(bytes), size});
  });
  return done ? ::syscall(SYS_write, descriptor, bytes, size) : -1;
}

int fsync(int descriptor) {
  const bool done = is_done(path_of(descriptor), [](PowerCutDisk& disk, const std::string& name) {
    const auto node = disk.find(name);
    if (node && !node->directory)
      disk.sync(*node);
    else
      disk.sync_directory(name);
  });
  if (!done) return -1;
  // The disk decides what survives, so the real file needs no sync, which would take milliseconds.
  const bool is_real = quasi::server::test::active == nullptr ||
                       quasi::server::test::active->name_of(path_of(descriptor)).empty();
  return is_real ? static_cast<int>(::syscall(SYS_fsync, descriptor)) : 0;
}

int rename(const char* from, const char* to) noexcept {
  const bool done = is_done(from, [&](PowerCutDisk& disk, const std::string& name) {
    disk.rename(name, quasi::server::test::active->name_of(to));
  });
  return done ? static_cast<int>(::syscall(SYS_rename, from, to)) : -1;
}

int remove(const char* path) noexcept {
  const bool done =
      is_done(path, [](PowerCutDisk& disk, const std::string& name) { disk.remove(name); });
  if (!done) return -1;
  if (::unlink(path) == 0) return 0;
  return errno == EISDIR ? ::rmdir(path) : -1;
}

int mkdir(const char* path, mode_t mode) noexcept {
  const bool done =
      is_done(path, [](PowerCutDisk& disk, const std::string& name) { disk.make_directory(name); });
  return done ? static_cast<int>(::syscall(SYS_mkdir, path, mode)) : -1;
}

}  // extern "C"
