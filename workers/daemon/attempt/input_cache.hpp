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

/// Stores input files of jobs under their digests in STATE/cache/<digest>, so that equal inputs are
/// fetched once. The least recently used files are removed when the sum of sizes exceeds the
/// capacity. Attempts hold hard links, so a removal never takes a file from a running engine.
/// Thread-safe.
class InputCache {
 public:
  /// Fetches a blob to a path. It may throw anything; then nothing is cached.
  using Fetch = std::function<void(const std::filesystem::path& to)>;

  /// Adopts the files that an earlier daemon cached.
  InputCache(FileSystem& files, std::filesystem::path directory, std::uint64_t capacity_bytes);

  /// Puts the file at `to` and fetches it if it is not cached. A cached file is hashed again at its
  /// first use after a start. Concurrent calls with one digest fetch it once. @throws
  /// StorageFailure if the fetched bytes do not hash to the digest. Exceptions of `fetch` pass
  /// through.
  void provide(const std::string& digest, std::uint64_t size_bytes, const std::filesystem::path& to,
               const Fetch& fetch);

  /// Returns the sum of the sizes of all cached files.
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
  std::set<std::string> being_used_;  ///< digests that a call is fetching or placing
  std::list<std::string> by_age_;     ///< least recently used first
  std::map<std::string, Entry> entries_;
  std::uint64_t total_bytes_ = 0;
};

}  // namespace quasi
