#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "server/queue/clock.hpp"
#include "server/queue/store.hpp"

namespace quasi::server {

/// The use of slots by tenants and by their members, with decay: after a half-life, past use counts
/// half. A running attempt counts at its grant for the time that is expected of it, and later for
/// its real time.
///
/// The sums live in memory and are made again from the days of the store. An error of them changes
/// the order of grants and no promise.
class FairShares {
 public:
  explicit FairShares(std::int64_t half_life_ms) : half_life_ms_(half_life_ms) {}

  /// Reads past use, running attempts and shares.
  void recover(Store& store, Now now);
  /// Reads the shares again before their next use.
  void forget_shares() { are_shares_known_ = false; }

  /// Counts an attempt from now on.
  void begin(const JobRow& job, std::int64_t fence, Now now);
  /// Counts running attempts for their real time. It is called every few seconds.
  void refresh(Now now);
  /// Counts the real time of an attempt.
  void end(std::int64_t fence, Now now);

  /// Use of a tenant, and of an owner in a tenant, over their shares. The account with the least
  /// comes first. Values compare with each other only.
  double rank_of(Store& store, const std::string& tenant);
  double rank_of(Store& store, const std::string& tenant, std::int64_t owner_id);

  /// True if no slot was used by the owner in the last `period_ms`, as far as is known. Of the time
  /// before a restart the server knows the days.
  bool has_been_idle(const std::string& tenant, std::int64_t owner_id, std::int64_t period_ms,
                     Now now) const;

 private:
  using Owner = std::pair<std::string, std::int64_t>;
  struct Running {
    Owner owner;
    std::int64_t slots = 0;
    std::int64_t began_ms = 0;    ///< monotonic
    std::int64_t charged_ms = 0;  ///< time for which it has been counted
  };

  /// Weight of use at a moment. It doubles with each half-life, which makes older use count less.
  double weight_at(std::int64_t monotonic_ms) const;
  void charge(const Owner& owner, std::int64_t slot_ms, std::int64_t monotonic_ms);
  void learn_shares(Store& store);

  std::int64_t half_life_ms_;
  std::int64_t origin_ms_ = 0;  ///< monotonic time of weight 1
  std::map<std::string, double> of_tenant_;
  std::map<Owner, double> of_owner_;
  std::map<Owner, std::int64_t> last_use_ms_;  ///< monotonic
  std::map<std::int64_t, Running> running_;    ///< by fence
  bool are_shares_known_ = false;
  std::map<std::string, std::int64_t> tenant_shares_;
  std::map<std::int64_t, std::int64_t> owner_shares_;
};

}  // namespace quasi::server
