#include "server/queue/job_state.hpp"

namespace quasi::server {

std::optional<JobState> next_state(JobState state, JobEvent event) {
  switch (state) {
    case JobState::kBlocked:
      if (event == JobEvent::kDependenciesMet) return JobState::kQueued;
      if (event == JobEvent::kDependencyFailed) return JobState::kFailed;
      if (event == JobEvent::kTakeResult) return JobState::kSucceeded;
      if (event == JobEvent::kHold) return JobState::kHeld;
      if (event == JobEvent::kReinstateLeased) return JobState::kLeased;
      if (event == JobEvent::kReinstateRunning) return JobState::kRunning;
      if (event == JobEvent::kCancel) return JobState::kCancelled;
      return std::nullopt;
    case JobState::kHeld:
      if (event == JobEvent::kUnholdToQueued) return JobState::kQueued;
      if (event == JobEvent::kUnholdToBlocked) return JobState::kBlocked;
      if (event == JobEvent::kDependencyFailed) return JobState::kFailed;
      if (event == JobEvent::kReinstateLeased) return JobState::kLeased;
      if (event == JobEvent::kReinstateRunning) return JobState::kRunning;
      if (event == JobEvent::kCancel) return JobState::kCancelled;
      return std::nullopt;
    case JobState::kQueued:
      if (event == JobEvent::kWaitForEqual) return JobState::kBlocked;
      if (event == JobEvent::kTakeResult) return JobState::kSucceeded;
      if (event == JobEvent::kHold) return JobState::kHeld;
      if (event == JobEvent::kGrant) return JobState::kLeased;
      if (event == JobEvent::kReinstateLeased) return JobState::kLeased;
      if (event == JobEvent::kReinstateRunning) return JobState::kRunning;
      if (event == JobEvent::kCancel) return JobState::kCancelled;
      return std::nullopt;
    case JobState::kLeased:
      if (event == JobEvent::kStart) return JobState::kRunning;
      if (event == JobEvent::kRequeue) return JobState::kQueued;
      if (event == JobEvent::kFail) return JobState::kFailed;
      if (event == JobEvent::kCancel) return JobState::kCancelling;
      return std::nullopt;
    case JobState::kRunning:
      if (event == JobEvent::kSucceed) return JobState::kSucceeded;
      if (event == JobEvent::kRequeue) return JobState::kQueued;
      if (event == JobEvent::kFail) return JobState::kFailed;
      if (event == JobEvent::kCancel) return JobState::kCancelling;
      return std::nullopt;
    case JobState::kCancelling:
      if (event == JobEvent::kStopped) return JobState::kCancelled;
      return std::nullopt;
    case JobState::kSucceeded:
    case JobState::kFailed:
    case JobState::kCancelled:
      return std::nullopt;  // final states
  }
  return std::nullopt;
}

std::string_view name_of(JobState state) {
  switch (state) {
    case JobState::kBlocked:
      return "BLOCKED";
    case JobState::kHeld:
      return "HELD";
    case JobState::kQueued:
      return "QUEUED";
    case JobState::kLeased:
      return "LEASED";
    case JobState::kRunning:
      return "RUNNING";
    case JobState::kCancelling:
      return "CANCELLING";
    case JobState::kSucceeded:
      return "SUCCEEDED";
    case JobState::kFailed:
      return "FAILED";
    case JobState::kCancelled:
      return "CANCELLED";
  }
  return "UNKNOWN";
}

}  // namespace quasi::server
