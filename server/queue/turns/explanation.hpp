#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/queue/clock.hpp"
#include "server/queue/fleet.hpp"
#include "server/queue/turns/choice.hpp"

/// Begin here: server/queue/turns explains why a job waits.
namespace quasi::server {

/// The numbers are those of quasi.v1.WaitReason.
enum class WaitReason : std::uint8_t {
  kNotWaiting = 1,
  kHeld = 2,
  kNotBefore = 3,
  kBackOff = 4,
  kNoWorker = 5,
  kNothingFits = 6,
  kBusy = 7,
  kBehind = 8,
  kNow = 9,
  kQuota = 10,
  kEqualJob = 11,
  kDependency = 12,
  kSetLimit = 13,
};

/// The reason why a job does not run, by the rules that grant jobs.
struct Explanation {
  JobRow job;
  WaitReason reason = WaitReason::kNotWaiting;
  std::string message;                       ///< the reason as a sentence
  std::vector<std::string> worker_ids = {};  ///< of kNow: workers whose next request gets the job
  /// Uids of jobs that the scope contains. Of kBusy: those in the slots that fit. Of kDependency:
  /// those that have not ended. Of kEqualJob: the running equal ones.
  std::vector<std::string> blocking = {};
  std::int64_t blocking_jobs = 0;  ///< number of all these jobs
  std::int64_t earliest_ms = 0;    ///< of kNotBefore and kBackOff: time of readiness, wall clock
  std::int64_t needed_bytes = 0;   ///< memory that it needs on each GPU, as grants count it
  double memory_correction = 1.0;  ///< measured over stated memory of its kind in its pool
  double time_correction = 1.0;    ///< measured time over stated limit of its kind in its pool
  std::int64_t expected_ms = 0;    ///< of kBusy: running jobs are expected to free enough slots
  std::int64_t latest_ms = 0;      ///< of kBusy: time limits of running jobs free enough slots
};

/// The knowledge beside the store from which a job is explained.
struct Moment {
  const Fleet& fleet;
  TurnRules rules;
  std::optional<std::int64_t> back_off_left_ms = {};  ///< of a job in a back-off
};

/// True if the scope contains the job.
bool is_visible(const Scope& scope, const JobRow& job);

/// Explains a job that the scope contains. It asks choose_job() for each worker that fits, at most
/// 16 of them, as if the worker offered all of its free slots.
Explanation explain(Store& store, const Scope& scope, const JobRow& job, const Moment& moment);

}  // namespace quasi::server
