#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "server/queue/clock.hpp"

namespace quasi::server {

/// Lets a job that has waited for a day, while nothing ran for its owner, go before the turns of
/// tenants and users: at most one an hour for each pool and tenant. Owners who get their shares are
/// left to the turns, however long their queues are. Nothing of it is stored: after a restart of
/// the server each tenant may have one at once.
class Ageing {
 public:
  /// Waiting time after which a job is old.
  static constexpr std::int64_t kOldMs = 24 * std::int64_t{3'600'000};
  /// Pause between two grants to old jobs of a tenant.
  static constexpr std::int64_t kPauseMs = 3'600'000;
  /// Pause after a look that found no old job.
  static constexpr std::int64_t kLookMs = 600'000;

  /// True if an old job of the tenant may go first now, as far as is known.
  bool is_due(const std::string& pool, const std::string& tenant, Now now) const {
    const auto next = next_ms_.find({pool, tenant});
    return next == next_ms_.end() || next->second <= now.monotonic_ms;
  }
  void found_none(const std::string& pool, const std::string& tenant, Now now) {
    next_ms_[{pool, tenant}] = now.monotonic_ms + kLookMs;
  }
  void granted(const std::string& pool, const std::string& tenant, Now now) {
    next_ms_[{pool, tenant}] = now.monotonic_ms + kPauseMs;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::int64_t> next_ms_;  ///< monotonic
};

}  // namespace quasi::server
