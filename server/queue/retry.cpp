#include "server/queue/retry.hpp"

#include <algorithm>

#include "proto/wire/limits.hpp"

namespace quasi::server {

std::string_view name_of(FailureReason reason) {
  switch (reason) {
    case FailureReason::kNone:
      return "NONE";
    case FailureReason::kInvalidInput:
      return "INVALID_INPUT";
    case FailureReason::kNumerical:
      return "NUMERICAL";
    case FailureReason::kTimeLimit:
      return "TIME_LIMIT";
    case FailureReason::kGpuOom:
      return "GPU_OOM";
    case FailureReason::kHostOom:
      return "HOST_OOM";
    case FailureReason::kChildCrashed:
      return "CHILD_CRASHED";
    case FailureReason::kGpuFault:
      return "GPU_FAULT";
    case FailureReason::kWorkerLost:
      return "WORKER_LOST";
    case FailureReason::kEngineError:
      return "ENGINE_ERROR";
    case FailureReason::kDependency:
      return "DEPENDENCY";
    case FailureReason::kStopRule:
      return "STOP_RULE";
    case FailureReason::kStorage:
      return "STORAGE";
    case FailureReason::kProtocol:
      return "PROTOCOL";
  }
  return "UNKNOWN";
}

bool may_be_granted_again(std::int32_t grants, std::int32_t max_attempts) {
  return grants < max_attempts + static_cast<std::int32_t>(limits::kUncountedGrants);
}

RetryDecision decide_retry(const FailedAttempt& failed) {
  RetryDecision decision;
  decision.counted = !failed.new_checkpoint;
  decision.delay = RetryDelay::kBackOff;
  switch (failed.reason) {
    case FailureReason::kNone:
    case FailureReason::kInvalidInput:
    case FailureReason::kNumerical:
    case FailureReason::kEngineError:
    case FailureReason::kDependency:
    case FailureReason::kStopRule:
      return {.retry = false, .counted = true, .delay = RetryDelay::kNone};
    case FailureReason::kTimeLimit:
      // Another attempt from the same checkpoint would reach the limit at the same point.
      if (!failed.new_checkpoint)
        return {.retry = false, .counted = true, .delay = RetryDelay::kNone};
      decision.delay = RetryDelay::kNone;
      break;
    case FailureReason::kGpuOom:
      if (failed.gpu_ooms > 1) return {.retry = false, .counted = true, .delay = RetryDelay::kNone};
      break;
    case FailureReason::kHostOom:
      if (failed.host_ooms > 1)
        return {.retry = false, .counted = true, .delay = RetryDelay::kNone};
      break;
    case FailureReason::kChildCrashed:
      if (failed.crashes > 2) return {.retry = false, .counted = true, .delay = RetryDelay::kNone};
      break;
    case FailureReason::kWorkerLost:
      decision.delay = RetryDelay::kRequeueDelay;
      break;
    case FailureReason::kGpuFault:
    case FailureReason::kStorage:
    case FailureReason::kProtocol:
      break;
  }
  const std::int32_t counted = failed.attempts - (decision.counted ? 0 : 1);
  decision.retry =
      counted < failed.max_attempts && may_be_granted_again(failed.grants, failed.max_attempts);
  return decision;
}

std::int64_t back_off_ms(std::int64_t base_ms, std::int32_t attempts, double uniform) {
  constexpr std::int64_t kHourMs = 3'600'000;
  const std::int32_t doublings = std::clamp(attempts - 1, 0, 20);
  const std::int64_t delay = std::min(base_ms << doublings, kHourMs);
  return static_cast<std::int64_t>(static_cast<double>(delay) * (0.8 + 0.4 * uniform));
}

}  // namespace quasi::server
