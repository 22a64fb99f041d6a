#include "workers/daemon/attempt/input_cache.hpp"

#include <algorithm>

#include "proto/wire/digest.hpp"
#include "workers/daemon/error.hpp"

namespace quasi {

namespace fs = std::filesystem;

InputCache::InputCache(FileSystem& files, fs::path directory, std::uint64_t capacity_bytes)
    : files_(files), directory_(std::move(directory)), capacity_bytes_(capacity_bytes) {
  files_.make_directory(directory_);
  for (const auto& name : files_.list(directory_)) {
    if (wire::is_digest(name))
      insert(name, files_.size_bytes(directory_ / name), false);
    else
      files_.remove_tree(directory_ / name);  // left by a fetch that a crash interrupted
  }
  make_room();
}

void InputCache::provide(const std::string& digest, std::uint64_t size_bytes, const fs::path& to,
                         const Fetch& fetch) {
  if (!wire::is_digest(digest))
    throw StorageFailure("'" + digest + "' is not a SHA-256 digest of 64 hexadecimal digits");
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !being_used_.contains(digest); });
  being_used_.insert(digest);
  const auto done = [&] {
    being_used_.erase(digest);
    changed_.notify_all();
  };
  lock.unlock();
  try {
    obtain(digest, size_bytes, fetch);
    files_.link_or_copy(directory_ / digest, to);
  } catch (...) {
    lock.lock();
    done();
    throw;
  }
  lock.lock();
  done();
  make_room();
}

void InputCache::obtain(const std::string& digest, std::uint64_t size_bytes, const Fetch& fetch) {
  const fs::path path = directory_ / digest;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(digest);
    if (found != entries_.end() && found->second.verified) {
      by_age_.splice(by_age_.end(), by_age_, found->second.position);
      return;
    }
  }
  if (files_.exists(path)) {
    if (files_.size_bytes(path) == size_bytes && files_.digest(path) == digest) {
      const std::lock_guard lock(mutex_);
      insert(digest, size_bytes, true);
      return;
    }
    const std::lock_guard lock(mutex_);
    forget(digest);
  }
  const fs::path part = directory_ / (digest + ".new");
  files_.remove_tree(part);
  fetch(part);
  if (files_.size_bytes(part) != size_bytes || files_.digest(part) != digest) {
    files_.remove_tree(part);
    throw StorageFailure("the bytes fetched for input " + digest +
                         " have another digest; the attempt cannot use them");
  }
  files_.make_read_only(part);
  files_.sync_file(part);
  files_.rename(part, path);
  files_.sync_directory(directory_);
  const std::lock_guard lock(mutex_);
  insert(digest, size_bytes, true);
}

void InputCache::insert(const std::string& digest, std::uint64_t size_bytes, bool verified) {
  const auto [found, is_new] = entries_.try_emplace(digest);
  if (is_new) {
    found->second.position = by_age_.insert(by_age_.end(), digest);
    found->second.size_bytes = size_bytes;
    total_bytes_ += size_bytes;
  }
  found->second.verified = verified;
  by_age_.splice(by_age_.end(), by_age_, found->second.position);
}

void InputCache::forget(const std::string& digest) {
  const auto found = entries_.find(digest);
  if (found != entries_.end()) {
    total_bytes_ -= found->second.size_bytes;
    by_age_.erase(found->second.position);
    entries_.erase(found);
  }
  files_.remove_tree(directory_ / digest);
}

void InputCache::make_room() {
  while (total_bytes_ > capacity_bytes_) {
    const auto oldest = std::find_if(by_age_.begin(), by_age_.end(), [&](const auto& digest) {
      return !being_used_.contains(digest);
    });
    if (oldest == by_age_.end()) return;
    forget(std::string(*oldest));
  }
}

std::uint64_t InputCache::size_bytes() const {
  const std::lock_guard lock(mutex_);
  return total_bytes_;
}

}  // namespace quasi
