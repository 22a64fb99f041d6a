#include "server/store/syncs/strict_syncs.hpp"

#include <utility>

namespace quasi::server {
namespace {

template <class Sync>
void told(const StrictSyncs::OnFailure& on_failure, Sync sync) {
  try {
    sync();
  } catch (const FileError& error) {
    if (!error.is_full()) on_failure(error);
    throw;
  }
}

class StrictFile : public FileSystem::File {
 public:
  StrictFile(std::unique_ptr<File> file, const StrictSyncs::OnFailure& on_failure)
      : file_(std::move(file)), on_failure_(on_failure) {}

  void write(std::uint64_t offset, std::string_view data) override { file_->write(offset, data); }
  std::size_t read(std::uint64_t offset, char* data, std::size_t size) override {
    return file_->read(offset, data, size);
  }
  void sync() override {
    told(on_failure_, [this] { file_->sync(); });
  }
  void truncate(std::uint64_t size) override { file_->truncate(size); }
  std::uint64_t size() override { return file_->size(); }

 private:
  std::unique_ptr<File> file_;
  const StrictSyncs::OnFailure& on_failure_;
};

}  // namespace

StrictSyncs::StrictSyncs(FileSystem& files, OnFailure on_failure)
    : files_(files), on_failure_(std::move(on_failure)) {}

std::unique_ptr<FileSystem::File> StrictSyncs::open(const std::string& path, Open mode) {
  return std::make_unique<StrictFile>(files_.open(path, mode), on_failure_);
}

void StrictSyncs::sync_directory(const std::string& path) {
  told(on_failure_, [&] { files_.sync_directory(path); });
}

}  // namespace quasi::server
