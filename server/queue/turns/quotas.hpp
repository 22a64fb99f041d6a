#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/queue/clock.hpp"
#include "server/queue/store.hpp"

namespace quasi::server {

/// Allowances of the users and tenants for whom none was set. An empty value is no limit.
struct QuotaDefaults {
  Allowance user;
  Allowance tenant;
};

/// The allowance in effect: each value as stored, or else the default.
Allowance allowance_in_effect(Store& store, const Account& account, const QuotaDefaults& defaults);

/// Checks new jobs against the quotas of their owner and tenant.
/// @throws Refused RESOURCE_EXHAUSTED / QUOTA_QUEUED, QUOTA_GPUS, QUOTA_GPU_HOURS or QUOTA_BYTES
void require_quota(Store& store, const Scope& scope, const std::vector<NewJob>& jobs,
                   const QuotaDefaults& defaults, std::int64_t default_max_runtime_ms);

/// Checks that the caller and their tenant may hold that many bytes more.
/// @throws Refused RESOURCE_EXHAUSTED / QUOTA_BYTES
void require_room_for_bytes(Store& store, const Scope& scope, std::int64_t bytes,
                            const QuotaDefaults& defaults);

/// Tells which jobs the quotas of running work permit. It reads each account once, so an object
/// lives for one decision.
class RunningQuotas {
 public:
  RunningQuotas(Store& store, const QuotaDefaults& defaults, Now now)
      : store_(store), defaults_(defaults), now_(now) {}

  /// Returns the sentence that explains why a job must not start on that many GPUs now; "" if it
  /// may start.
  std::string why_not(const JobRow& job, std::int32_t gpus);

 private:
  /// The part of a quota that is free.
  struct Room {
    Allowance quota;
    Used used;
  };
  const Room& room_of(const Account& account);

  Store& store_;
  const QuotaDefaults& defaults_;
  Now now_;
  std::map<std::int64_t, Room> of_owner_;
  std::map<std::string, Room> of_tenant_;
};

}  // namespace quasi::server
