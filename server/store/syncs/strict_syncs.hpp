#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/store/file_system.hpp"

namespace quasi::server {

/// A file system on which a failed sync is told before its error is thrown. After such a failure
/// the system may drop the bytes and still report success for the next sync, so the server ends
/// instead of trying again. A sync that fails because the disk is full is not told: the bytes are
/// written once more before the next sync.
class StrictSyncs : public FileSystem {
 public:
  using OnFailure = std::function<void(const FileError&)>;

  StrictSyncs(FileSystem& files, OnFailure on_failure);

  std::unique_ptr<File> open(const std::string& path, Open mode) override;
  bool exists(const std::string& path) override { return files_.exists(path); }
  bool make_directory(const std::string& path) override { return files_.make_directory(path); }
  void rename(const std::string& from, const std::string& to) override { files_.rename(from, to); }
  void remove(const std::string& path) override { files_.remove(path); }
  void sync_directory(const std::string& path) override;
  std::vector<std::string> list(const std::string& path) override { return files_.list(path); }
  void make_read_only(const std::string& path) override { files_.make_read_only(path); }

 private:
  FileSystem& files_;
  OnFailure on_failure_;
};

}  // namespace quasi::server
