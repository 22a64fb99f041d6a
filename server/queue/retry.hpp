#pragma once

#include <cstdint>
#include <string_view>

namespace quasi::server {

/// Reason for the failure of an attempt. The numbers are those of quasi.v1.FailureReason and of the
/// database.
enum class FailureReason : std::uint8_t {
  kNone = 0,
  kInvalidInput = 1,
  kNumerical = 2,
  kTimeLimit = 3,
  kGpuOom = 4,
  kHostOom = 5,
  kChildCrashed = 6,
  kGpuFault = 7,
  kWorkerLost = 8,
  kEngineError = 9,
  kDependency = 10,
  kStopRule = 11,
  kStorage = 12,
  kProtocol = 13,
};

std::string_view name_of(FailureReason reason);

/// The state of a job after one of its attempts has failed. The counts include that attempt.
struct FailedAttempt {
  FailureReason reason = FailureReason::kNone;
  bool new_checkpoint = false;  ///< the attempt recorded a checkpoint of its own
  std::int32_t attempts = 0;    ///< counted attempts
  std::int32_t max_attempts = 0;
  std::int32_t grants = 0;   ///< grants of any outcome
  std::int32_t crashes = 0;  ///< CHILD_CRASHED without a new checkpoint
  std::int32_t gpu_ooms = 0;
  std::int32_t host_ooms = 0;
};

enum class RetryDelay : std::uint8_t { kNone, kBackOff, kRequeueDelay };

struct RetryDecision {
  bool retry = false;
  bool counted = true;  ///< false: the attempt does not count toward max_attempts
  RetryDelay delay = RetryDelay::kNone;
};

/// Decides if a failed job gets another attempt, and after which delay.
///
/// INVALID_INPUT, NUMERICAL, ENGINE_ERROR, STOP_RULE and DEPENDENCY are never retried. TIME_LIMIT
/// is retried only with a new checkpoint, CHILD_CRASHED at most twice, GPU_OOM and HOST_OOM once,
/// the others up to max_attempts. An attempt with a new checkpoint counts toward neither
/// max_attempts nor the crash limit. No job is granted more than max_attempts + 20 times.
RetryDecision decide_retry(const FailedAttempt& failed);

/// True while the job may be granted once more.
bool may_be_granted_again(std::int32_t grants, std::int32_t max_attempts);

/// Back-off after the n-th counted attempt (n ≥ 1): base × 2^(n−1), at most an hour, ± 20 %.
/// @param uniform  a uniform number in [0, 1] that sets the jitter
std::int64_t back_off_ms(std::int64_t base_ms, std::int32_t attempts, double uniform);

}  // namespace quasi::server
