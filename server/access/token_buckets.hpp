#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace quasi::server {

/// Limits how often each key may do something: as often as a full bucket holds tokens at once, then
/// once every interval. Memory is bounded: at most 4,096 keys are known, and while all of their
/// buckets lack a token a further key has none. Thread-safe.
class TokenBuckets {
 public:
  /// @param interval_us  time in which a bucket gains one token
  /// @param capacity_us  time in which an empty bucket becomes full
  TokenBuckets(std::int64_t interval_us, std::int64_t capacity_us)
      : interval_us_(interval_us), capacity_us_(capacity_us) {}

  /// Returns the time until the key has a token; 0 if it has one.
  /// @param now_ms  the monotonic clock
  std::int64_t wait_ms(const std::string& key, std::int64_t now_ms) const;

  /// Takes a token if the key has one. @return 0, or the time until the key has one.
  std::int64_t add(const std::string& key, std::int64_t now_ms);

  /// Takes the tokens of a time even if the key lacks them, so that it has none until they are
  /// back.
  /// @param us  number of tokens × interval
  void spend(const std::string& key, std::int64_t us, std::int64_t now_ms);

 private:
  /// Returns the moment from which the bucket of a key is full; null if no further key can be
  /// known. The caller holds the mutex.
  std::int64_t* find_full_us(const std::string& key, std::int64_t now_us);
  std::int64_t wait_us(std::int64_t full_us, std::int64_t now_us) const;

  const std::int64_t interval_us_;
  const std::int64_t capacity_us_;
  mutable std::mutex mutex_;
  /// Holds the moment from which each bucket is full. A key without a row has a full one.
  std::map<std::string, std::int64_t> full_us_;
};

}  // namespace quasi::server
