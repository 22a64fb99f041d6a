#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "workers/daemon/ports/file_system.hpp"

namespace quasi {

/// Files of jobs, kept by digest so that the same input is fetched once: STATE/cache/<digest>. The
/// files used longest ago are removed when their sum exceeds the capacity; attempts hold hard
/// links, so a removal never takes a file from a running engine. Thread-safe.
class InputCache {
 public:
  /// Fetches a blob to a path; throws what it wants, and then nothing is cached.
  using Fetch = std::function<void(const std::filesystem::path& to)>;

  /// Takes up what an earlier daemon left.
  InputCache(FileSystem& files, std::filesystem::path directory, std::uint64_t capacity_bytes);

  /// Puts the file at `to`, fetching it if it is not here. A cached file is hashed again at its
  /// first use after a start. Two callers with one digest fetch it once.
  /// @throws StorageFailure if the fetched bytes do not hash to the digest; whatever `fetch`
  /// throws.
  void place(const std::string& digest, std::uint64_t size_bytes, const std::filesystem::path& to,
             const Fetch& fetch);

  std::uint64_t size_bytes() const;

 private:
  struct Entry {
    std::uint64_t size_bytes = 0;
    bool verified = false;
    std::list<std::string>::iterator position;
  };

  void obtain(const std::string& digest, std::uint64_t size_bytes, const Fetch& fetch);
  void insert(const std::string& digest, std::uint64_t size_bytes, bool verified);
  void forget(const std::string& digest);
  void make_room();

  FileSystem& files_;
  std::filesystem::path directory_;
  std::uint64_t capacity_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> being_used_;  ///< digests that some caller is fetching or placing
  std::list<std::string> by_age_;     ///< least recently used first
  std::map<std::string, Entry> entries_;
  std::uint64_t total_bytes_ = 0;
};

}  // namespace quasi
