#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace quasi::server {

/// States of a job. The numbers are those of quasi.v1.JobState and of the database.
enum class JobState : std::uint8_t {
  kBlocked = 1,
  kHeld = 2,
  kQueued = 3,
  kLeased = 4,
  kRunning = 5,
  kCancelling = 6,
  kSucceeded = 7,
  kFailed = 8,
  kCancelled = 9,
};

inline constexpr std::array kAllJobStates = {
    JobState::kBlocked,   JobState::kHeld,    JobState::kQueued,
    JobState::kLeased,    JobState::kRunning, JobState::kCancelling,
    JobState::kSucceeded, JobState::kFailed,  JobState::kCancelled,
};

/// Events in the life of a job.
enum class JobEvent : std::uint8_t {
  kDependenciesMet,   ///< it waits for no other job any more
  kDependencyFailed,  ///< a job that it waited for did not succeed
  kHold,              ///< a user holds it
  kUnholdToQueued,    ///< a user releases it; no dependency blocks it
  kUnholdToBlocked,   ///< a user releases it; it still waits for other jobs
  kWaitForEqual,      ///< an equal job runs or comes first, whose result it may take
  kTakeResult,        ///< it takes the result of an equal job
  kGrant,             ///< a worker receives it
  kStart,             ///< the child process is running
  kRequeue,  ///< lease expired, released, or failed for a reason that allows another attempt
  kReinstateLeased,   ///< the expired lease is valid again; the child was not running yet
  kReinstateRunning,  ///< the expired lease is valid again; the child is running
  kFail,              ///< failed without another attempt
  kSucceed,
  kCancel,   ///< a user cancels it
  kStopped,  ///< after a cancel: the worker reports the end, or its lease expires
};

inline constexpr std::array kAllJobEvents = {
    JobEvent::kDependenciesMet,
    JobEvent::kDependencyFailed,
    JobEvent::kHold,
    JobEvent::kUnholdToQueued,
    JobEvent::kUnholdToBlocked,
    JobEvent::kWaitForEqual,
    JobEvent::kTakeResult,
    JobEvent::kGrant,
    JobEvent::kStart,
    JobEvent::kRequeue,
    JobEvent::kReinstateLeased,
    JobEvent::kReinstateRunning,
    JobEvent::kFail,
    JobEvent::kSucceed,
    JobEvent::kCancel,
    JobEvent::kStopped,
};

/// The transition table of a job. Returns nothing if the event does not apply in this state. A
/// report on a job that its worker no longer holds then changes nothing.
std::optional<JobState> next_state(JobState state, JobEvent event);

/// SUCCEEDED, FAILED and CANCELLED are final: a job never leaves them.
constexpr bool is_final(JobState state) { return state >= JobState::kSucceeded; }

std::string_view name_of(JobState state);

}  // namespace quasi::server
