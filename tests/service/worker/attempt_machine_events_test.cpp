// Tests events of an attempt that come late, twice, or while it is about to end otherwise. No
// attempt is lost by them, none is reported twice, and no lost lease is reported at all.

#include <gtest/gtest.h>

#include "tests/service/worker/attempt_machine_fixture.hpp"

namespace quasi::test {
namespace {

class MachineEvents : public AttemptMachineTest {
 protected:
  void restart() { machine = AttemptMachine{AttemptTimes{}, kTimeLimit, kStageTimeout}; }
  void to_staging() {
    restart();
    EXPECT_EQ(machine.state_name(), "staging");
    EXPECT_EQ(machine.begin(now), Acts{Act::kStage});
  }
  void to_starting() {
    to_staging();
    EXPECT_EQ(machine.staged(std::nullopt, now), Acts{Act::kSpawn});
    EXPECT_EQ(machine.state_name(), "starting");
  }
  void to_running() {
    to_starting();
    EXPECT_EQ(machine.engine_started(now), Acts{Act::kAnnounce});
    EXPECT_EQ(machine.announced(now), Acts{});
    EXPECT_EQ(machine.state_name(), "running");
  }
  void to_finishing(bool success) {
    to_running();
    if (success) machine.engine_has_result();
    leave(success ? 0 : 10);
    EXPECT_EQ(machine.state_name(), "finishing");
  }
  void to_reporting(bool success) {
    to_finishing(success);
    machine.log_flushed(now);
    if (success) machine.published(std::nullopt, now);
    EXPECT_EQ(machine.state_name(), "reporting");
  }
  void to_over() {
    to_reporting(false);
    EXPECT_EQ(machine.reported(Answer::kAccepted, "", now), Acts{Act::kRemove});
    EXPECT_EQ(machine.state_name(), "over");
  }
};

// A daemon that restarts goes on with the recorded ending. Only a success is announced anew.
TEST_F(MachineEvents, ARestartedDaemonReportsTheRecordedEnding) {
  EXPECT_EQ(machine.recover(Ending::succeeded(), now),
            (Acts{Act::kAnnounce, Act::kPublish, Act::kFlushLog}));
  machine.log_flushed(now);
  EXPECT_EQ(machine.published(std::nullopt, now), Acts{}) << "the start is not acknowledged yet";
  EXPECT_EQ(machine.announced(now), Acts{Act::kReport});

  restart();
  const Ending failure = Ending::failed(v1::FAILURE_REASON_NUMERICAL, "it diverged");
  EXPECT_EQ(machine.recover(failure, now), Acts{Act::kFlushLog});
  EXPECT_EQ(machine.log_flushed(now), Acts{Act::kReport});
  EXPECT_EQ(machine.ending().message, "it diverged");
}

TEST_F(MachineEvents, AnInputThatCannotBeFetchedIsTheEnding) {
  to_staging();
  EXPECT_EQ(machine.next_deadline(), now + kStageTimeout);
  EXPECT_EQ(pass(kStageTimeout - Milliseconds(1)), Acts{}) << "the fetch has its time";
  EXPECT_EQ(machine.staged(Ending::failed(v1::FAILURE_REASON_STORAGE, "no such blob"), now),
            Acts{Act::kFlushLog});
  EXPECT_EQ(machine.ending().reason, v1::FAILURE_REASON_STORAGE);
  EXPECT_EQ(machine.staged(std::nullopt, now), Acts{}) << "the fetch has ended before";
  EXPECT_EQ(machine.state(), State::kFinishing);
}

// Nothing was computed, so nothing is kept.
TEST_F(MachineEvents, AFenceWhileStagingRemovesTheAttempt) {
  to_staging();
  EXPECT_EQ(machine.fenced(now), Acts{Act::kAbandonStaging});
  EXPECT_EQ(machine.fenced(now), Acts{}) << "said before";
  EXPECT_EQ(machine.cancel(now), Acts{}) << "the fetch was abandoned before";
  EXPECT_EQ(machine.staged(std::nullopt, now), Acts{Act::kRemove});
  EXPECT_EQ(machine.state(), State::kOver);
}

TEST_F(MachineEvents, AFenceWithoutAChildOrAnUploadEndsAtOnce) {
  to_finishing(false);
  EXPECT_EQ(machine.fenced(now), Acts{Act::kKeep});
  EXPECT_EQ(machine.log_flushed(now), Acts{}) << "no report of a lost lease";
  to_reporting(true);
  EXPECT_EQ(machine.fenced(now), Acts{Act::kKeep});
  EXPECT_EQ(machine.reported(Answer::kAccepted, "", now), Acts{});
}

TEST_F(MachineEvents, AnEngineThatStartsTwiceIsKilled) {
  to_running();
  EXPECT_EQ(machine.engine_started(now), Acts{Act::kKill});
  EXPECT_EQ(machine.engine_broke_protocol("more nonsense", now), Acts{}) << "killed before";
  machine.exited({.signal = 9}, now);
  EXPECT_EQ(machine.ending().message, "the engine announced its start twice") << "the first cause";
}

TEST_F(MachineEvents, AnExitCountsOnce) {
  to_running();
  leave(10);
  EXPECT_EQ(leave(0), Acts{});
  EXPECT_EQ(machine.ending().exit_status, 10);
}

// A report of StartAttempt may come back after the attempt has moved on.
TEST_F(MachineEvents, AnAnnouncementIsRepeatedWhileItIsWanted) {
  to_running();
  EXPECT_EQ(machine.announce_again(now), Acts{});
  EXPECT_EQ(pass(Milliseconds(60'000)), Acts{}) << "it was acknowledged";
  to_starting();
  machine.engine_started(now);
  EXPECT_EQ(machine.fenced(now), Acts{Act::kKill});
  EXPECT_EQ(machine.exited({.signal = 9}, now), Acts{Act::kKeep});
  machine.announce_again(now);
  EXPECT_EQ(pass(Milliseconds(60'000)), Acts{}) << "the lease is lost";
}

TEST_F(MachineEvents, ResultsThatCannotBePublishedAreAFailure) {
  to_finishing(true);
  EXPECT_EQ(machine.published(Ending::failed(v1::FAILURE_REASON_STORAGE, "too many files"), now),
            Acts{});
  EXPECT_EQ(machine.log_flushed(now), Acts{Act::kReport});
  EXPECT_EQ(machine.ending().message, "too many files");

  to_finishing(true);
  EXPECT_EQ(machine.cancel(now), Acts{Act::kAbandonPublish});
  machine.published(Ending::failed(v1::FAILURE_REASON_STORAGE, "abandoned"), now);
  EXPECT_EQ(machine.ending().kind, Kind::kCancelled) << "the cancel is the cause";
}

TEST_F(MachineEvents, ACancelThatTheServerKnewFirstIsTheEnding) {
  to_reporting(true);
  EXPECT_EQ(machine.reported(Answer::kCancelled, "", now), Acts{Act::kReport});
  EXPECT_EQ(machine.ending().kind, Kind::kCancelled);
  EXPECT_EQ(machine.reported(Answer::kCancelled, "", now), Acts{Act::kKeep}) << "refused again";
  EXPECT_EQ(machine.state(), State::kOver);
}

TEST_F(MachineEvents, LostFilesOfAFailureAreNotPublished) {
  to_reporting(false);
  EXPECT_EQ(machine.reported(Answer::kBlobsMissing, "a checkpoint", now), Acts{Act::kReport});
  EXPECT_EQ(machine.ending().reason, v1::FAILURE_REASON_STORAGE);
}

// A worker may get a cancel while it reports how an attempt ended. If the report is on its way, it
// stays as it is, and the server decides which came first. If the report waits to be sent again, it
// then says that the attempt was cancelled.
TEST_F(MachineEvents, ACancelChangesAReportThatWaits) {
  to_reporting(false);
  EXPECT_EQ(machine.cancel(now), Acts{});
  EXPECT_EQ(machine.ending().kind, Kind::kFailed) << "the report is under way";
  machine.reported(Answer::kAgain, "", now);
  EXPECT_EQ(machine.cancel(now), Acts{});
  EXPECT_EQ(machine.ending().kind, Kind::kCancelled);
  EXPECT_EQ(pass(Milliseconds(200)), Acts{Act::kReport});
}

TEST_F(MachineEvents, ACancelOfAFailureThatIsBeingSentIsTheEnding) {
  to_finishing(false);
  EXPECT_EQ(machine.cancel(now), Acts{}) << "nothing is being uploaded";
  EXPECT_EQ(machine.ending().kind, Kind::kCancelled);
}

// A checkpoint is asked of an engine that runs.
TEST_F(MachineEvents, ACheckpointIsAskedOfARunningEngineAlone) {
  to_starting();
  EXPECT_EQ(machine.checkpoint_now(), Acts{});
  machine.engine_started(now);
  EXPECT_EQ(machine.checkpoint_now(), Acts{Act::kSendCheckpointNow});
  EXPECT_EQ(machine.checkpoint_recorded(now), Acts{}) << "nobody drains";
  leave(10);
  EXPECT_EQ(machine.checkpoint_now(), Acts{});
}

TEST_F(MachineEvents, ADrainWhileStagingGivesTheLeaseBack) {
  to_staging();
  EXPECT_EQ(machine.drain(now, true), Acts{Act::kAbandonStaging});
  EXPECT_EQ(machine.drain(now, false), Acts{}) << "it drains already";
  EXPECT_EQ(pass(kStageTimeout), Acts{}) << "the fetch was abandoned before";
  EXPECT_EQ(machine.next_deadline(), std::nullopt);
  machine.staged(std::nullopt, now);
  EXPECT_EQ(machine.ending().kind, Kind::kReleased);
}

// An engine that has not started yet has no time of which the end is known.
TEST_F(MachineEvents, ADrainAsksAStartingEngineAndStopsItInTime) {
  to_starting();
  EXPECT_EQ(machine.drain(now, true), Acts{Act::kSendCheckpointNow});
  EXPECT_EQ(machine.next_deadline(), now + AttemptTimes{}.start_timeout);
  EXPECT_EQ(machine.tick(now + AttemptTimes{}.start_timeout - Milliseconds(1)), Acts{});
  machine.engine_started(now);
  EXPECT_EQ(machine.next_deadline(), now + AttemptTimes{}.drain_timeout);
  EXPECT_EQ(pass(AttemptTimes{}.drain_timeout), Acts{Act::kSendCancel});
  EXPECT_EQ(machine.next_deadline(), now + AttemptTimes{}.cancel_grace);
  EXPECT_EQ(pass(Milliseconds(1)), Acts{}) << "asked once";
}

TEST_F(MachineEvents, ASecondDrainProlongsNothing) {
  to_running();
  machine.drain(now, false);
  pass(Milliseconds(60'000));
  EXPECT_EQ(machine.drain(now, false), Acts{});
  EXPECT_EQ(pass(AttemptTimes{}.drain_timeout - Milliseconds(60'000)), Acts{Act::kSendCancel});
}

TEST_F(MachineEvents, ADrainOfAnEndedEngineWaitsForItsReport) {
  to_finishing(false);
  EXPECT_EQ(machine.drain(now, true), Acts{});
  EXPECT_EQ(pass(AttemptTimes{}.drain_timeout), Acts{});
  EXPECT_EQ(machine.log_flushed(now), Acts{Act::kReport});
}

// Without contact an engine goes on for a while. Then it is stopped, and the lease is given back.
TEST_F(MachineEvents, AnOrphanIsStoppedAndGivenBack) {
  to_running();
  EXPECT_EQ(machine.orphaned(now), Acts{Act::kSendCancel});
  leave(14);
  EXPECT_EQ(machine.ending().kind, Kind::kReleased);
  EXPECT_EQ(machine.orphaned(now), Acts{}) << "there is no engine any more";
}

TEST_F(MachineEvents, ASecondOrderToStopKillsAtOnce) {
  to_running();
  machine.drain(now, false);
  EXPECT_EQ(machine.stop_now(now), Acts{Act::kKill});
  EXPECT_EQ(machine.next_deadline(), now + AttemptTimes{}.kill_grace);
  EXPECT_EQ(machine.cancel(now), Acts{}) << "a kill is no longer taken back";
  EXPECT_EQ(machine.state(), State::kRunning);
}

// A kill may be late: the start or the time of an engine that is being killed cause nothing more.
TEST_F(MachineEvents, TheTimesOfAKilledEngineAreOver) {
  to_starting();
  machine.fenced(now);
  pass(AttemptTimes{}.kill_grace);
  EXPECT_EQ(machine.next_deadline(), std::nullopt);
  EXPECT_EQ(pass(AttemptTimes{}.start_timeout), Acts{});
  to_running();
  machine.cancel(now);
  EXPECT_EQ(machine.next_deadline(), now + AttemptTimes{}.cancel_grace);
  EXPECT_EQ(machine.tick(now + kTimeLimit), Acts{Act::kTerminate}) << "of the cancel";
}

// A pause for a report that is not wanted any more.
TEST_F(MachineEvents, APauseEndsWithoutAReportOnceTheResultsAreSentAnew) {
  to_reporting(true);
  machine.reported(Answer::kAgain, "", now);
  machine.reported(Answer::kBlobsMissing, "gone", now);
  EXPECT_EQ(machine.state(), State::kFinishing);
  EXPECT_EQ(pass(Milliseconds(200)), Acts{}) << "the results are being uploaded";
  EXPECT_EQ(machine.published(std::nullopt, now), Acts{Act::kReport});
}

TEST_F(MachineEvents, NothingHappensAfterTheEnd) {
  to_over();
  EXPECT_EQ(machine.stop_now(now), Acts{});
  EXPECT_EQ(machine.announce_again(now), Acts{});
  EXPECT_EQ(machine.log_flushed(now), Acts{});
  EXPECT_EQ(pass(std::chrono::hours(24)), Acts{});
}

}  // namespace
}  // namespace quasi::test
