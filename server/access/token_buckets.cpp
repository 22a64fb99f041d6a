#include "server/access/token_buckets.hpp"

#include <algorithm>
#include <cstddef>

namespace quasi::server {
namespace {

constexpr std::size_t kMostKeys = 4'096;

/// Returns whole milliseconds that last at least this long.
std::int64_t to_ms(std::int64_t us) { return (us + 999) / 1'000; }

}  // namespace

std::int64_t TokenBuckets::wait_us(std::int64_t full_us, std::int64_t now_us) const {
  return std::max<std::int64_t>(0, full_us - now_us - (capacity_us_ - interval_us_));
}

std::int64_t TokenBuckets::wait_ms(const std::string& key, std::int64_t now_ms) const {
  const std::lock_guard lock(mutex_);
  const auto known = full_us_.find(key);
  return known == full_us_.end() ? 0 : to_ms(wait_us(known->second, now_ms * 1'000));
}

std::int64_t* TokenBuckets::find_full_us(const std::string& key, std::int64_t now_us) {
  const auto known = full_us_.find(key);
  if (known != full_us_.end()) return &known->second;
  if (full_us_.size() >= kMostKeys)
    std::erase_if(full_us_, [&](const auto& each) { return each.second <= now_us; });
  if (full_us_.size() >= kMostKeys) return nullptr;
  return &full_us_.emplace(key, now_us).first->second;
}

std::int64_t TokenBuckets::add(const std::string& key, std::int64_t now_ms) {
  const std::int64_t now_us = now_ms * 1'000;
  const std::lock_guard lock(mutex_);
  std::int64_t* full_us = find_full_us(key, now_us);
  if (full_us == nullptr) return to_ms(interval_us_);
  const std::int64_t wait = wait_us(*full_us, now_us);
  if (wait == 0) *full_us = std::max(*full_us, now_us) + interval_us_;
  return to_ms(wait);
}

void TokenBuckets::spend(const std::string& key, std::int64_t us, std::int64_t now_ms) {
  const std::int64_t now_us = now_ms * 1'000;
  const std::lock_guard lock(mutex_);
  if (std::int64_t* full_us = find_full_us(key, now_us)) *full_us = std::max(*full_us, now_us) + us;
}

}  // namespace quasi::server
