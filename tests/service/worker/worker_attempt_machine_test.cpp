// Tests the state machine of one attempt: its actions, their order, and the ways in which it ends.

#include <gtest/gtest.h>

#include <map>

#include "quasi/v1/engine.pb.h"
#include "tests/service/worker/attempt_machine_fixture.hpp"

namespace quasi::test {
namespace {

class Machine : public AttemptMachineTest {
 protected:
  void to_running() {
    EXPECT_EQ(machine.begin(now), Acts{Act::kStage});
    EXPECT_EQ(machine.staged(std::nullopt, now), Acts{Act::kSpawn});
    EXPECT_EQ(machine.engine_started(now), Acts{Act::kAnnounce});
    EXPECT_EQ(machine.announced(now), Acts{});
    EXPECT_EQ(machine.state(), State::kRunning);
  }
};

TEST_F(Machine, SucceedsByPublishingThenReporting) {
  to_running();
  machine.engine_has_result();
  EXPECT_EQ(leave(0), (Acts{Act::kPublish, Act::kFlushLog}));
  EXPECT_EQ(machine.log_flushed(now), Acts{});
  EXPECT_EQ(machine.published(std::nullopt, now), Acts{Act::kReport});
  EXPECT_EQ(machine.reported(Answer::kAccepted, "", now), Acts{Act::kRemove});
  EXPECT_EQ(machine.ending().kind, Kind::kSucceeded);
  EXPECT_EQ(machine.state(), State::kOver);
}

// An engine that announced nothing is explained by its exit status.
TEST_F(Machine, AnExitStatusOfTheContractIsExplained) {
  const std::map<int, std::string> words = {
      {v1::ENGINE_EXIT_UNEXPECTED, "its log names it"},
      {v1::ENGINE_EXIT_USAGE, "built without the service; install"},
      {v1::ENGINE_EXIT_BACKEND_ABSENT, "built without this kind"},
      {77, "unknown status 77"},
  };
  for (const auto& [status, expected] : words) {
    machine = AttemptMachine{AttemptTimes{}, kTimeLimit, kStageTimeout};
    to_running();
    leave(status);
    EXPECT_EQ(machine.ending().reason, v1::FAILURE_REASON_ENGINE_ERROR) << status;
    EXPECT_NE(machine.ending().message.find(expected), std::string::npos)
        << status << ": " << machine.ending().message;
  }
}

// The server accepts a success only of a started attempt. A child that ends before the start is
// acknowledged must wait.
TEST_F(Machine, ReportsOnlyAfterTheStartIsAcknowledged) {
  machine.begin(now);
  machine.staged(std::nullopt, now);
  machine.engine_started(now);
  machine.engine_has_result();
  leave(0);
  machine.log_flushed(now);
  EXPECT_EQ(machine.published(std::nullopt, now), Acts{});
  EXPECT_EQ(machine.announced(now), Acts{Act::kReport});
}

TEST_F(Machine, AnnouncesAgainUntilTheServerAnswers) {
  machine.begin(now);
  machine.staged(std::nullopt, now);
  machine.engine_started(now);
  machine.announce_again(now);
  EXPECT_EQ(machine.next_deadline(), now + Milliseconds(200));
  EXPECT_EQ(pass(Milliseconds(200)), Acts{Act::kAnnounce});
  machine.announce_again(now);
  EXPECT_EQ(pass(Milliseconds(399)), Acts{});
  EXPECT_EQ(pass(Milliseconds(1)), Acts{Act::kAnnounce});
}

struct StatusCase {
  int status;
  v1::FailureReason reason;
};
class ExitStatuses : public Machine, public testing::WithParamInterface<StatusCase> {};

TEST_P(ExitStatuses, MeanWhatTheContractSays) {
  to_running();
  EXPECT_EQ(leave(GetParam().status), Acts{Act::kFlushLog});
  EXPECT_EQ(machine.ending().kind, Kind::kFailed);
  EXPECT_EQ(machine.ending().reason, GetParam().reason);
  EXPECT_EQ(machine.ending().exit_status, GetParam().status);
  EXPECT_EQ(machine.log_flushed(now), Acts{Act::kReport});
}
INSTANTIATE_TEST_SUITE_P(, ExitStatuses,
                         testing::Values(StatusCase{0, v1::FAILURE_REASON_PROTOCOL},
                                         StatusCase{1, v1::FAILURE_REASON_ENGINE_ERROR},
                                         StatusCase{10, v1::FAILURE_REASON_INVALID_INPUT},
                                         StatusCase{11, v1::FAILURE_REASON_NUMERICAL},
                                         StatusCase{12, v1::FAILURE_REASON_GPU_OOM},
                                         StatusCase{13, v1::FAILURE_REASON_GPU_FAULT},
                                         StatusCase{14, v1::FAILURE_REASON_PROTOCOL},
                                         StatusCase{15, v1::FAILURE_REASON_STORAGE},
                                         StatusCase{16, v1::FAILURE_REASON_ENGINE_ERROR},
                                         StatusCase{99, v1::FAILURE_REASON_ENGINE_ERROR}),
                         [](const auto& test_case) {
                           return "Status" + std::to_string(test_case.param.status);
                         });

TEST_F(Machine, TellsTheHostsMemoryFromTheDevices) {
  to_running();
  machine.engine_failed(v1::FAILURE_REASON_HOST_OOM, "needs 90 GiB, 64 are there");
  leave(12);
  EXPECT_EQ(machine.ending().reason, v1::FAILURE_REASON_HOST_OOM);
  EXPECT_EQ(machine.ending().message, "needs 90 GiB, 64 are there");
}

TEST_F(Machine, ASignalIsACrashUnlessTheKernelTookItForMemory) {
  to_running();
  machine.exited({.signal = 11}, now);
  EXPECT_EQ(machine.ending().reason, v1::FAILURE_REASON_CHILD_CRASHED);
  AttemptMachine starved{AttemptTimes{}, kTimeLimit, kStageTimeout};
  starved.begin(now);
  starved.staged(std::nullopt, now);
  starved.engine_started(now);
  starved.exited({.signal = 9, .killed_for_memory = true}, now);
  EXPECT_EQ(starved.ending().reason, v1::FAILURE_REASON_HOST_OOM);
}

TEST_F(Machine, CancelClimbsFromMessageToQuarantine) {
  to_running();
  EXPECT_EQ(machine.cancel(now), Acts{Act::kSendCancel});
  EXPECT_EQ(machine.cancel(now), Acts{});  // sent once
  EXPECT_EQ(pass(Milliseconds(19'999)), Acts{});
  EXPECT_EQ(pass(Milliseconds(1)), Acts{Act::kTerminate});
  EXPECT_EQ(pass(Milliseconds(10'000)), Acts{Act::kKill});
  EXPECT_EQ(pass(Milliseconds(5'000)), Acts{Act::kDeviceStuck});
  EXPECT_EQ(pass(Milliseconds(3'600'000)), Acts{});  // waits without a limit
  EXPECT_EQ(machine.exited({.signal = 9}, now), Acts{Act::kFlushLog});
  EXPECT_EQ(machine.ending().kind, Kind::kCancelled);
}

TEST_F(Machine, AResultAfterACancelIsDiscarded) {
  to_running();
  machine.cancel(now);
  machine.engine_has_result();
  leave(0);
  EXPECT_EQ(machine.ending().kind, Kind::kCancelled);
}

TEST_F(Machine, CancelWhileStagingWaitsForTheFetchers) {
  machine.begin(now);
  EXPECT_EQ(machine.cancel(now), Acts{Act::kAbandonStaging});
  EXPECT_EQ(machine.staged(std::nullopt, now), Acts{Act::kFlushLog});
  EXPECT_EQ(machine.log_flushed(now), Acts{Act::kReport});
  EXPECT_EQ(machine.ending().kind, Kind::kCancelled);
}

TEST_F(Machine, CancelWhilePublishingAbandonsIt) {
  to_running();
  machine.engine_has_result();
  leave(0);
  machine.log_flushed(now);
  EXPECT_EQ(machine.cancel(now), Acts{Act::kAbandonPublish});
  EXPECT_EQ(machine.published(std::nullopt, now), Acts{Act::kReport});
  EXPECT_EQ(machine.ending().kind, Kind::kCancelled);
}

TEST_F(Machine, TheTimeLimitCountsFromTheEnginesStart) {
  machine.begin(now);
  now += Milliseconds(20'000);  // staging does not count
  machine.staged(std::nullopt, now);
  machine.engine_started(now);
  machine.announced(now);
  EXPECT_EQ(machine.next_deadline(), now + kTimeLimit);
  EXPECT_EQ(pass(kTimeLimit), Acts{Act::kSendCancel});
  leave(14);
  EXPECT_EQ(machine.ending().kind, Kind::kFailed);
  EXPECT_EQ(machine.ending().reason, v1::FAILURE_REASON_TIME_LIMIT);
}

TEST_F(Machine, AResultJustAfterTheTimeLimitCounts) {
  to_running();
  pass(kTimeLimit);
  machine.engine_has_result();
  leave(0);
  EXPECT_EQ(machine.ending().kind, Kind::kSucceeded);
}

TEST_F(Machine, AStageTimeoutGivesTheLeaseBack) {
  machine.begin(now);
  EXPECT_EQ(pass(kStageTimeout), Acts{Act::kAbandonStaging});
  machine.staged(Ending::failed(v1::FAILURE_REASON_STORAGE, "cut"), now);
  EXPECT_EQ(machine.ending().kind, Kind::kReleased);
  EXPECT_EQ(machine.ending().release, v1::RELEASE_REASON_STAGE_TIMEOUT);
}

TEST_F(Machine, ASilentEngineIsKilled) {
  machine.begin(now);
  machine.staged(std::nullopt, now);
  EXPECT_EQ(pass(Milliseconds(60'000)), Acts{Act::kKill});
  machine.exited({.signal = 9}, now);
  EXPECT_EQ(machine.ending().reason, v1::FAILURE_REASON_PROTOCOL);
}

TEST_F(Machine, GarbageKillsAtOnce) {
  to_running();
  EXPECT_EQ(machine.engine_broke_protocol("nonsense", now), Acts{Act::kKill});
  machine.exited({.signal = 9}, now);
  EXPECT_EQ(machine.ending().reason, v1::FAILURE_REASON_PROTOCOL);
  EXPECT_EQ(machine.ending().message, "nonsense");
}

TEST_F(Machine, FencedKillsAndReportsNothing) {
  to_running();
  EXPECT_EQ(machine.fenced(now), Acts{Act::kKill});
  EXPECT_EQ(machine.exited({.signal = 9}, now), Acts{Act::kKeep});
  EXPECT_EQ(machine.tick(now + std::chrono::hours(48)), Acts{});
}

TEST_F(Machine, FencedWhilePublishingWaitsForTheUploader) {
  to_running();
  machine.engine_has_result();
  leave(0);
  EXPECT_EQ(machine.fenced(now), Acts{Act::kAbandonPublish});
  EXPECT_EQ(machine.log_flushed(now), Acts{});
  EXPECT_EQ(machine.published(std::nullopt, now), Acts{Act::kKeep});
}

TEST_F(Machine, DrainAsksForACheckpointAndStopsOnceItIsRecorded) {
  to_running();
  EXPECT_EQ(machine.drain(now, false), Acts{Act::kSendCheckpointNow});
  EXPECT_EQ(machine.checkpoint_recorded(now), Acts{Act::kSendCancel});
  leave(14);
  EXPECT_EQ(machine.ending().kind, Kind::kReleased);
  EXPECT_EQ(machine.ending().release, v1::RELEASE_REASON_DRAIN);
}

TEST_F(Machine, DrainGivesAJobItsTimeToFinish) {
  to_running();
  machine.drain(now, false);
  EXPECT_EQ(pass(Milliseconds(119'999)), Acts{});
  EXPECT_EQ(pass(Milliseconds(1)), Acts{Act::kSendCancel});
  machine.engine_has_result();
  leave(0);
  EXPECT_EQ(machine.ending().kind, Kind::kSucceeded);
}

// A drain of the worker lets an engine go on whose time limit ends within the drain's time, and
// asks it once for a checkpoint. An engine with a longer limit is stopped after its checkpoint. An
// order of the server stops both.
TEST_F(Machine, ADrainLetsAnEngineEndThatFitsItsTime) {
  to_running();
  pass(kTimeLimit - AttemptTimes{}.drain_timeout);
  EXPECT_EQ(machine.drain(now, true), Acts{Act::kSendCheckpointNow});
  EXPECT_EQ(machine.checkpoint_recorded(now), Acts{}) << "it goes on";
  EXPECT_EQ(pass(AttemptTimes{}.drain_timeout - Milliseconds(1)), Acts{});
  machine.engine_has_result();
  leave(0);
  EXPECT_EQ(machine.ending().kind, Kind::kSucceeded);

  machine = AttemptMachine{AttemptTimes{}, kTimeLimit, kStageTimeout};
  to_running();
  pass(kTimeLimit - AttemptTimes{}.drain_timeout - Milliseconds(1));
  EXPECT_EQ(machine.drain(now, true), Acts{Act::kSendCheckpointNow});
  EXPECT_EQ(machine.checkpoint_recorded(now), Acts{Act::kSendCancel});

  machine = AttemptMachine{AttemptTimes{}, kTimeLimit, kStageTimeout};
  to_running();
  pass(kTimeLimit - AttemptTimes{}.drain_timeout);
  machine.drain(now, true);
  EXPECT_EQ(machine.drain(now, false), Acts{Act::kSendCheckpointNow}) << "the server's order";
  EXPECT_EQ(machine.checkpoint_recorded(now), Acts{Act::kSendCancel});
}

TEST_F(Machine, ReportsAreRepeatedWithGrowingPauses) {
  to_running();
  leave(10);
  machine.log_flushed(now);
  Milliseconds pause(200);
  for (int i = 0; i < 8; ++i) {
    machine.reported(Answer::kAgain, "", now);
    EXPECT_EQ(machine.next_deadline(), now + pause);
    EXPECT_EQ(pass(pause), Acts{Act::kReport});
    pause = std::min(pause * 2, Milliseconds(5'000));
  }
}

TEST_F(Machine, LostUploadsAreRepeatedAFewTimes) {
  to_running();
  machine.engine_has_result();
  leave(0);
  machine.log_flushed(now);
  machine.published(std::nullopt, now);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(machine.reported(Answer::kBlobsMissing, "gone", now), Acts{Act::kPublish});
    EXPECT_EQ(machine.published(std::nullopt, now), Acts{Act::kReport});
  }
  EXPECT_EQ(machine.reported(Answer::kBlobsMissing, "gone", now), Acts{Act::kReport});
  EXPECT_EQ(machine.ending().reason, v1::FAILURE_REASON_STORAGE);
}

TEST_F(Machine, ARefusedSuccessIsReportedAsAFailure) {
  to_running();
  machine.engine_has_result();
  leave(0);
  machine.log_flushed(now);
  machine.published(std::nullopt, now);
  EXPECT_EQ(machine.reported(Answer::kRefused, "artifacts[0].name", now), Acts{Act::kReport});
  EXPECT_EQ(machine.ending().kind, Kind::kFailed);
  EXPECT_EQ(machine.reported(Answer::kRefused, "still", now), Acts{Act::kKeep});
}

TEST_F(Machine, ASpawnThatFailsIsReported) {
  machine.begin(now);
  machine.staged(std::nullopt, now);
  EXPECT_EQ(machine.spawn_failed("no such file", now), Acts{Act::kFlushLog});
  EXPECT_EQ(machine.log_flushed(now), Acts{Act::kReport});
  EXPECT_FALSE(machine.child_alive());
}

TEST_F(Machine, LateWordsChangeNothing) {
  to_running();
  leave(10);
  machine.log_flushed(now);
  machine.reported(Answer::kAccepted, "", now);
  EXPECT_EQ(machine.cancel(now), Acts{});
  EXPECT_EQ(machine.fenced(now), Acts{});
  EXPECT_EQ(machine.drain(now, false), Acts{});
  EXPECT_EQ(machine.published(std::nullopt, now), Acts{});
  EXPECT_EQ(machine.announced(now), Acts{});
  EXPECT_EQ(machine.reported(Answer::kAgain, "", now), Acts{});
  EXPECT_EQ(machine.next_deadline(), std::nullopt);
}

}  // namespace
}  // namespace quasi::test
