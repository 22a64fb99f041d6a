#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "server/access/principal.hpp"

namespace quasi::server {

/// Stands for a place among the open streams of a principal, until the last copy of it goes.
using StreamPlace = std::shared_ptr<void>;

/// Limits how many streams each principal may have open at once: watches, logs, uploads and
/// downloads. Workers, whose streams follow from jobs, and the owner of a server without tokens
/// have no limit. Thread-safe.
class OpenStreams {
 public:
  /// @param limit  streams of one principal, at least 1
  explicit OpenStreams(std::int64_t limit) : limit_(limit) {}

  /// Counts a stream that begins. @return its place; null for a caller without a limit
  /// @throws Refused RESOURCE_EXHAUSTED / RATE_LIMITED with the time to wait
  StreamPlace open(const Caller& caller);

 private:
  /// The places of streams share the counts, because a stream may outlive this object.
  struct Counts {
    std::mutex mutex;
    std::map<std::int64_t, std::int64_t> streams_of_principals;
  };
  const std::int64_t limit_;
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

}  // namespace quasi::server
