#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "proto/wire/digest.hpp"

namespace quasi::server {

/// Stores intermediate hash states of the blobs that were read last. A reader that continues in the
/// middle of a blob starts from such a state instead of hashing the blob from its first byte. The
/// states are lost with the process. Thread-safe.
class HashMarks {
 public:
  struct Mark {
    std::uint64_t bytes = 0;  ///< number of bytes hashed so far
    wire::Sha256 state;
  };
  /// Bytes between two marks of a blob. A blob has at most 64 marks, at least a mebibyte apart.
  static std::uint64_t spacing(std::uint64_t size_bytes);

  /// The last mark at or before `offset`.
  std::optional<Mark> before(const std::string& digest, std::uint64_t offset);
  /// Keeps a copy of `state`, unless there is a mark less than `spacing` before it.
  void put(const std::string& digest, std::uint64_t bytes, const wire::Sha256& state,
           std::uint64_t spacing);
  /// Drops the marks of a blob, because the file on disk may differ from the file that was hashed.
  void forget(const std::string& digest);

 private:
  struct Blob {
    std::string digest;
    std::map<std::uint64_t, wire::Sha256> marks;
  };
  std::mutex mutex_;
  std::list<Blob> blobs_;  ///< the most recently used blob first
  std::unordered_map<std::string, std::list<Blob>::iterator> by_digest_;
};

}  // namespace quasi::server
