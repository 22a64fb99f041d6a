#include "server/store/log_store.hpp"

namespace quasi::server {
namespace {

constexpr std::size_t kOpenFiles = 256;

}  // namespace

LogStore::LogStore(FileSystem& files, std::string root)
    : files_(files), root_(std::move(root) + "/logs") {
  if (files_.make_directory(root_)) files_.sync_directory(root_.substr(0, root_.rfind('/')));
}

std::string LogStore::path_of(const std::string& attempt_uid) const {
  return root_ + "/" + attempt_uid.substr(attempt_uid.size() - 2) + "/" + attempt_uid + ".log";
}

std::shared_ptr<FileSystem::File> LogStore::open(const std::string& attempt_uid,
                                                 FileSystem::Open mode) {
  const std::lock_guard lock(mutex_);
  const auto known = by_uid_.find(attempt_uid);
  if (known != by_uid_.end()) {
    recent_.splice(recent_.begin(), recent_, known->second);
    return known->second->second;
  }
  const std::string path = path_of(attempt_uid);
  if (mode == FileSystem::Open::kCreate && !files_.exists(path)) {
    const std::string directory = path.substr(0, path.rfind('/'));
    if (files_.make_directory(directory)) unsynced_directories_.insert(root_);
    unsynced_directories_.insert(directory);
  } else if (mode == FileSystem::Open::kCreate) {
    mode = FileSystem::Open::kReadWrite;
  }
  std::shared_ptr<FileSystem::File> file = files_.open(path, mode);
  if (mode == FileSystem::Open::kRead) return file;  // only the writer's files are kept open
  recent_.emplace_front(attempt_uid, file);
  by_uid_[attempt_uid] = recent_.begin();
  if (recent_.size() > kOpenFiles) {
    by_uid_.erase(recent_.back().first);
    recent_.pop_back();
  }
  return file;
}

void LogStore::write(const std::string& attempt_uid, std::int64_t offset, std::string_view data) {
  const auto file = open(attempt_uid, FileSystem::Open::kCreate);
  file->write(static_cast<std::uint64_t>(offset), data);
  unsynced_[attempt_uid] = file;
}

std::string LogStore::read(const std::string& attempt_uid, std::int64_t offset, std::int64_t size) {
  std::string data(static_cast<std::size_t>(size), '\0');
  const auto file = open(attempt_uid, FileSystem::Open::kRead);
  data.resize(file->read(static_cast<std::uint64_t>(offset), data.data(), data.size()));
  return data;
}

void LogStore::sync_written() {
  for (const auto& [uid, file] : unsynced_) file->sync();
  unsynced_.clear();
  std::set<std::string> directories;
  {
    const std::lock_guard lock(mutex_);
    directories.swap(unsynced_directories_);
  }
  for (const std::string& directory : directories) files_.sync_directory(directory);
}

void LogStore::remove(const std::string& attempt_uid) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = by_uid_.find(attempt_uid); known != by_uid_.end()) {
      recent_.erase(known->second);
      by_uid_.erase(known);
    }
  }
  const std::string path = path_of(attempt_uid);
  if (!files_.exists(path)) return;
  files_.remove(path);
  files_.sync_directory(path.substr(0, path.rfind('/')));
}

void LogStore::truncate(const std::string& attempt_uid, std::int64_t size) {
  if (!files_.exists(path_of(attempt_uid))) return;
  const auto file = open(attempt_uid, FileSystem::Open::kReadWrite);
  if (file->size() > static_cast<std::uint64_t>(size)) {
    file->truncate(static_cast<std::uint64_t>(size));
    file->sync();
  }
}

}  // namespace quasi::server
