#include "server/store/file_system.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "workers/files/durable_file.hpp"

namespace quasi::server {

FileError::FileError(int error_, const std::string& what)
    : std::runtime_error(what + ": " + std::strerror(error_)), error(error_) {}
bool FileError::is_full() const { return error == ENOSPC || error == EDQUOT; }
bool FileError::is_missing() const { return error == ENOENT; }

namespace {

/// Does something with a file; its failure becomes one of the server.
template <class Work>
void guarded(Work work) {
  try {
    work();
  } catch (const files::FileFailure& failure) {
    throw FileError(failure.code().value(), failure.doing + " " + failure.path.string());
  }
}

class SystemFile : public FileSystem::File {
 public:
  /// @throws files::FileFailure
  SystemFile(const std::string& path, int flags) : path_(path), file_(path, flags) {}

  void write(std::uint64_t offset, std::string_view data) override {
    while (!data.empty()) {
      const ssize_t put =
          ::pwrite(file_.get(), data.data(), data.size(), static_cast<off_t>(offset));
      if (put < 0) {
        if (errno == EINTR) continue;
        throw FileError(errno, "write " + path_);
      }
      data.remove_prefix(static_cast<std::size_t>(put));
      offset += static_cast<std::uint64_t>(put);
    }
  }
  std::size_t read(std::uint64_t offset, char* data, std::size_t size) override {
    std::size_t done = 0;
    while (done < size) {
      const ssize_t got =
          ::pread(file_.get(), data + done, size - done, static_cast<off_t>(offset + done));
      if (got < 0) {
        if (errno == EINTR) continue;
        throw FileError(errno, "read " + path_);
      }
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }
  void sync() override {
    guarded([this] { file_.sync_data(); });
  }
  void truncate(std::uint64_t size) override {
    if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0)
      throw FileError(errno, "truncate " + path_);
  }
  std::uint64_t size() override {
    struct stat info {};
    if (::fstat(file_.get(), &info) != 0) throw FileError(errno, "stat " + path_);
    return static_cast<std::uint64_t>(info.st_size);
  }

 private:
  std::string path_;
  files::Descriptor file_;
};

class SystemFileSystem : public FileSystem {
 public:
  std::unique_ptr<File> open(const std::string& path, Open mode) override {
    const int flags = mode == Open::kRead        ? O_RDONLY
                      : mode == Open::kReadWrite ? O_RDWR
                                                 : O_RDWR | O_CREAT;
    std::unique_ptr<File> file;
    guarded([&] { file = std::make_unique<SystemFile>(path, flags); });
    return file;
  }
  bool exists(const std::string& path) override {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0;
  }
  bool make_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), 0700) == 0) return true;
    if (errno == EEXIST) return false;
    throw FileError(errno, "make directory " + path);
  }
  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0)
      throw FileError(errno, "rename " + from + " to " + to);
  }
  void remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw FileError(errno, "remove " + path);
  }
  void sync_directory(const std::string& path) override {
    guarded([&] { files::sync_directory(path); });
  }
  std::vector<std::string> list(const std::string& path) override {
    DIR* directory = ::opendir(path.c_str());
    if (directory == nullptr) throw FileError(errno, "list " + path);
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(directory)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    ::closedir(directory);
    return names;
  }
  void make_read_only(const std::string& path) override {
    if (::chmod(path.c_str(), 0400) != 0) throw FileError(errno, "protect " + path);
  }
};

}  // namespace

FileSystem& system_files() {
  static SystemFileSystem files;
  return files;
}

}  // namespace quasi::server
