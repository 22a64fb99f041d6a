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

/// What can happen to a job.
enum class JobEvent : std::uint8_t {
  kDependenciesMet,   ///< the last job it waited for ended as wished
  kDependencyFailed,  ///< a job it waited for did not
  kHold,              ///< a person puts it aside
  kUnholdToQueued,    ///< a person takes it back; nothing blocks it
  kUnholdToBlocked,   ///< a person takes it back; it still waits for other jobs
  kGrant,             ///< a worker gets it
  kStart,             ///< the child is up
  kRequeue,           ///< lease expired, given back, or failed in a way worth another attempt
  kReinstateLeased,   ///< the expired lease stands again; the child was not up yet
  kReinstateRunning,  ///< the expired lease stands again; the child is up
  kFail,              ///< failed for good
  kSucceed,
  kCancel,   ///< a person does not want it any more
  kStopped,  ///< after a cancel: the worker reports the end, or is not heard of
};

inline constexpr std::array kAllJobEvents = {
    JobEvent::kDependenciesMet,
    JobEvent::kDependencyFailed,
    JobEvent::kHold,
    JobEvent::kUnholdToQueued,
    JobEvent::kUnholdToBlocked,
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

/// The whole life of a job. Nothing is returned if the event does not apply: whoever reports on a
/// job it no longer holds gets that answer, and nothing changes.
std::optional<JobState> next_state(JobState state, JobEvent event);

/// SUCCEEDED, FAILED, CANCELLED: never left.
constexpr bool is_final(JobState state) { return state >= JobState::kSucceeded; }

std::string_view name_of(JobState state);

}  // namespace quasi::server
