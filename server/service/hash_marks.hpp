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

/// How far blobs have been hashed while they were read, so that a reader who continues in the
/// middle need not wait until everything before it is hashed again. States of the hash at a few
/// places of the blobs read last; lost with the process, which costs one hashing from the first
/// byte. Thread-safe.
class HashMarks {
 public:
  struct Mark {
    std::uint64_t bytes = 0;  ///< hashed so far
    wire::Sha256 state;
  };
  /// Bytes between two marks of a blob: at most 64 of them, at least a mebibyte apart.
  static std::uint64_t spacing(std::uint64_t size_bytes);

  /// The mark furthest on at or before `offset`.
  std::optional<Mark> before(const std::string& digest, std::uint64_t offset);
  /// Keeps a copy of `state`, unless there is a mark less than `spacing` before it.
  void put(const std::string& digest, std::uint64_t bytes, const wire::Sha256& state,
           std::uint64_t spacing);
  /// What was hashed may not be what is on the disk now.
  void forget(const std::string& digest);

 private:
  struct Blob {
    std::string digest;
    std::map<std::uint64_t, wire::Sha256> marks;
  };
  std::mutex mutex_;
  std::list<Blob> blobs_;  ///< the one used last in front
  std::unordered_map<std::string, std::list<Blob>::iterator> by_digest_;
};

}  // namespace quasi::server
