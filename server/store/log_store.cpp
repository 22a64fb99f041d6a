#include "server/store/log_store.hpp"

namespace quasi::server {
namespace {

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

LogStore::LogStore(FileSystem& files, std::string root)
    : files_(files), root_(std::move(root) + "/logs") {
  if (files_.make_directory(root_)) files_.sync_directory(parent_of(root_));
}

std::string LogStore::path_of(const std::string& attempt_uid) const {
  return root_ + "/" + attempt_uid.substr(attempt_uid.size() - 2) + "/" + attempt_uid + ".log";
}

void LogStore::write(const std::string& attempt_uid, std::int64_t offset, std::string_view data) {
  const std::string path = path_of(attempt_uid);
  files_.make_directory(parent_of(path));
  const auto file = files_.open(path, FileSystem::Open::kCreate);
  file->write(static_cast<std::uint64_t>(offset), data);
  file->sync();
  // An earlier write that a crash cut off may have left the names unsynced.
  files_.sync_directory(parent_of(path));
  files_.sync_directory(root_);
}

std::string LogStore::read(const std::string& attempt_uid, std::int64_t offset, std::int64_t size) {
  std::string data(static_cast<std::size_t>(size), '\0');
  const auto file = files_.open(path_of(attempt_uid), FileSystem::Open::kRead);
  data.resize(file->read(static_cast<std::uint64_t>(offset), data.data(), data.size()));
  return data;
}

void LogStore::remove(const std::string& attempt_uid) {
  const std::string path = path_of(attempt_uid);
  if (!files_.exists(path)) return;
  files_.remove(path);
  files_.sync_directory(parent_of(path));
}

}  // namespace quasi::server
