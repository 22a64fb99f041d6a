#pragma once

#include <optional>
#include <vector>

#include "server/queue/fleet.hpp"
#include "server/queue/turns/ageing.hpp"
#include "server/queue/turns/fair_shares.hpp"
#include "server/queue/turns/quotas.hpp"

namespace quasi::server {

/// True if a worker that has to end after `time_left_ms` has the time for the job: the time that it
/// is expected to take, or two intervals of the checkpoints that it writes. Absent: the worker has
/// no end.
bool has_time_for(const JobRow& job, const Fleet& fleet,
                  const std::optional<std::int64_t>& time_left_ms);

/// Returns every slot of the worker, as if it offered all.
std::vector<FreeSlot> all_slots(const Fleet::Member& member);

/// A choice of the scheduler: the job, and the indices of the slots that it gets.
struct Choice {
  JobRow job;
  std::vector<std::size_t> slots;
  bool is_aged = false;  ///< it goes before the turns (Ageing)
};

/// The rules and the moment of a choice.
struct TurnRules {
  const QuotaDefaults& quotas;
  FairShares& shares;
  Ageing& ageing;
  Now now;
  std::int64_t lease_ttl_ms = 0;                  ///< a worker silent for longer is lost
  std::optional<std::int64_t> time_left_ms = {};  ///< until the worker has to end
};

/// Chooses the next job for these slots. Tenants come in the order of their use over their shares,
/// then the owners of a tenant, then the jobs of an owner: highest priority first, then oldest. A
/// job is passed over if it does not fit, or if a quota makes it wait.
///
/// A job that has waited for a day, while nothing ran for its owner, goes before the turns, one an
/// hour for each tenant.
///
/// The first job that needs several GPUs, more than the slots have, reserves the worker on which it
/// can start first. A later job then starts there only if its time limit ends before, or if the
/// reserved job does not need its slots.
///
/// It reads the first jobs of each queue, and at most 4,096 further ones in all, so its cost does
/// not depend on the length of the queues.
std::optional<Choice> choose_job(Store& store, const Fleet& fleet, const Fleet::Member& member,
                                 const std::vector<UsableSlot>& slots, const TurnRules& rules);

}  // namespace quasi::server
