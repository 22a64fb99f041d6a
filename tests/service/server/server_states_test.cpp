// Tests the state machine of jobs and the classes of failures against the tables of the
// documentation.

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "server/queue/job_state.hpp"
#include "server/queue/leases.hpp"
#include "server/queue/retry.hpp"
#include "server/queue/rows.hpp"

namespace quasi::server {
namespace {

// Every pair of state and event gives the transition of the table, or nothing.
TEST(JobStates, EveryPair) {
  using S = JobState;
  using E = JobEvent;
  const std::map<std::pair<S, E>, S> arrows = {
      {{S::kBlocked, E::kDependenciesMet}, S::kQueued},
      {{S::kBlocked, E::kDependencyFailed}, S::kFailed},
      {{S::kBlocked, E::kTakeResult}, S::kSucceeded},
      {{S::kBlocked, E::kHold}, S::kHeld},
      {{S::kBlocked, E::kReinstateLeased}, S::kLeased},
      {{S::kBlocked, E::kReinstateRunning}, S::kRunning},
      {{S::kBlocked, E::kCancel}, S::kCancelled},
      {{S::kHeld, E::kUnholdToQueued}, S::kQueued},
      {{S::kHeld, E::kUnholdToBlocked}, S::kBlocked},
      {{S::kHeld, E::kDependencyFailed}, S::kFailed},
      {{S::kHeld, E::kReinstateLeased}, S::kLeased},
      {{S::kHeld, E::kReinstateRunning}, S::kRunning},
      {{S::kHeld, E::kCancel}, S::kCancelled},
      {{S::kQueued, E::kWaitForEqual}, S::kBlocked},
      {{S::kQueued, E::kTakeResult}, S::kSucceeded},
      {{S::kQueued, E::kHold}, S::kHeld},
      {{S::kQueued, E::kGrant}, S::kLeased},
      {{S::kQueued, E::kReinstateLeased}, S::kLeased},
      {{S::kQueued, E::kReinstateRunning}, S::kRunning},
      {{S::kQueued, E::kCancel}, S::kCancelled},
      {{S::kLeased, E::kStart}, S::kRunning},
      {{S::kLeased, E::kRequeue}, S::kQueued},
      {{S::kLeased, E::kFail}, S::kFailed},
      {{S::kLeased, E::kCancel}, S::kCancelling},
      {{S::kRunning, E::kSucceed}, S::kSucceeded},
      {{S::kRunning, E::kRequeue}, S::kQueued},
      {{S::kRunning, E::kFail}, S::kFailed},
      {{S::kRunning, E::kCancel}, S::kCancelling},
      {{S::kCancelling, E::kStopped}, S::kCancelled},
  };
  for (const S state : kAllJobStates) {
    for (const E event : kAllJobEvents) {
      const auto arrow = arrows.find({state, event});
      const auto next = next_state(state, event);
      EXPECT_EQ(next.has_value(), arrow != arrows.end())
          << name_of(state) << " event " << static_cast<int>(event);
      if (next && arrow != arrows.end()) {
        EXPECT_EQ(*next, arrow->second);
      }
    }
  }
}

TEST(JobStates, FinalStatesAreNeverLeft) {
  for (const JobState state : kAllJobStates) {
    if (!is_final(state)) continue;
    for (const JobEvent event : kAllJobEvents) EXPECT_FALSE(next_state(state, event));
  }
}

// A number that a newer program wrote is no state of this one.
TEST(JobStates, AnUnknownStateIsLeftByNoEvent) {
  const auto unknown = static_cast<JobState>(99);
  for (const JobEvent event : kAllJobEvents) EXPECT_FALSE(next_state(unknown, event));
  EXPECT_EQ(name_of(unknown), "UNKNOWN");
}

RetryDecision decide(FailureReason reason, FailedAttempt failed = {}) {
  failed.reason = reason;
  if (failed.attempts == 0) failed.attempts = 1;
  if (failed.max_attempts == 0) failed.max_attempts = 3;
  if (failed.grants == 0) failed.grants = failed.attempts;
  return decide_retry(failed);
}

TEST(Retry, Classes) {
  for (const FailureReason reason :
       {FailureReason::kInvalidInput, FailureReason::kNumerical, FailureReason::kEngineError,
        FailureReason::kStopRule, FailureReason::kDependency, FailureReason::kTimeLimit})
    EXPECT_FALSE(decide(reason).retry) << name_of(reason);
  for (const FailureReason reason : {FailureReason::kWorkerLost, FailureReason::kGpuFault,
                                     FailureReason::kStorage, FailureReason::kProtocol}) {
    EXPECT_TRUE(decide(reason, {.attempts = 2}).retry) << name_of(reason);
    EXPECT_FALSE(decide(reason, {.attempts = 3}).retry) << name_of(reason);
  }
  EXPECT_TRUE(decide(FailureReason::kChildCrashed, {.max_attempts = 10, .crashes = 2}).retry);
  EXPECT_FALSE(decide(FailureReason::kChildCrashed, {.max_attempts = 10, .crashes = 3}).retry);
  EXPECT_TRUE(decide(FailureReason::kGpuOom, {.gpu_ooms = 1}).retry);
  EXPECT_FALSE(decide(FailureReason::kGpuOom, {.gpu_ooms = 2}).retry);
  EXPECT_FALSE(decide(FailureReason::kHostOom, {.host_ooms = 2}).retry);
}

TEST(Retry, AnAttemptWithANewCheckpointDoesNotCount) {
  const auto decision =
      decide(FailureReason::kTimeLimit, {.new_checkpoint = true, .attempts = 3, .max_attempts = 3});
  EXPECT_TRUE(decision.retry);
  EXPECT_FALSE(decision.counted);
  EXPECT_EQ(decision.delay, RetryDelay::kNone);
  // Twenty uncounted grants are the limit.
  EXPECT_FALSE(decide(FailureReason::kWorkerLost,
                      {.new_checkpoint = true, .attempts = 1, .max_attempts = 3, .grants = 23})
                   .retry);
}

TEST(Retry, BackOffDoublesUpToAnHourWithinTwentyPercent) {
  EXPECT_EQ(back_off_ms(30'000, 1, 0.5), 30'000);
  EXPECT_EQ(back_off_ms(30'000, 3, 0.5), 120'000);
  EXPECT_EQ(back_off_ms(30'000, 20, 0.5), 3'600'000);
  EXPECT_EQ(back_off_ms(30'000, 1, 0.0), 24'000);
  EXPECT_LE(back_off_ms(30'000, 1, 0.9999), 36'000);
}

TEST(Leases, ExpireInOrderOnTheMonotonicClock) {
  Leases leases;
  leases.set(1, 100);
  leases.set(2, 50);
  leases.set(1, 200);  // renewed
  EXPECT_EQ(leases.expired(150, 10), std::vector<std::int64_t>{2});
  leases.erase(2);
  EXPECT_TRUE(leases.expired(150, 10).empty());
  EXPECT_EQ(leases.expired(200, 10), std::vector<std::int64_t>{1});
}

TEST(Placement, IsReadBackAsWritten) {
  const Placement placement{
      .kind = "thermal", .device = Preference::kCuda, .gpus = 4, .memory_class = 36};
  EXPECT_EQ(decode_placement(encode(placement)), placement);
  EXPECT_EQ(memory_class_of(0), 0);
  EXPECT_EQ(memory_class_of((std::int64_t{1} << 36) + 5), 36);
}

}  // namespace
}  // namespace quasi::server
