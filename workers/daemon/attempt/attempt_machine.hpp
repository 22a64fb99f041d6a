#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quasi/v1/job.pb.h"
#include "quasi/v1/worker_service.pb.h"
#include "workers/daemon/ports/clock.hpp"

namespace quasi {

/// Ending of an attempt, as it is reported to the server.
struct Ending {
  enum class Kind { kSucceeded, kFailed, kCancelled, kReleased };
  Kind kind = Kind::kFailed;
  v1::FailureReason reason = v1::FAILURE_REASON_UNSPECIFIED;   ///< meaningful if kind is kFailed
  v1::ReleaseReason release = v1::RELEASE_REASON_UNSPECIFIED;  ///< meaningful if kind is kReleased
  std::string message;
  std::optional<int> exit_status;
  std::optional<int> signal;

  static Ending succeeded() { return {.kind = Kind::kSucceeded}; }
  static Ending cancelled() { return {.kind = Kind::kCancelled}; }
  static Ending failed(v1::FailureReason reason, std::string message) {
    return {.kind = Kind::kFailed, .reason = reason, .message = std::move(message)};
  }
  static Ending released(v1::ReleaseReason why, std::string message) {
    return {.kind = Kind::kReleased, .release = why, .message = std::move(message)};
  }
};

/// Exit of a child process.
struct ChildExit {
  std::optional<int> exit_status;
  std::optional<int> signal;
  bool killed_for_memory = false;  ///< the counters of its cgroup say so
};

/// Durations that govern one attempt.
struct AttemptTimes {
  Milliseconds start_timeout{60'000};    ///< from spawn to the engine's first message
  Milliseconds cancel_grace{20'000};     ///< from the cancel message to SIGTERM
  Milliseconds terminate_grace{10'000};  ///< from SIGTERM to SIGKILL
  Milliseconds kill_grace{5'000};        ///< from SIGKILL to the device's quarantine
  Milliseconds drain_timeout{120'000};   ///< from the start of a drain to the cancel message
  Milliseconds retry_first{200};         ///< first pause between reports; doubles up to retry_most
  Milliseconds retry_most{5'000};
};

/// Next step that the owner of an attempt carries out. Steps are carried out in the order given.
enum class Act {
  kStage,           ///< fetch the inputs, then `staged`
  kAbandonStaging,  ///< stop fetching; `staged` is still called
  kSpawn,           ///< start the engine; `spawn_failed` if that cannot be
  kAnnounce,        ///< call StartAttempt, then `announced` or `report_again`
  kSendCancel,
  kSendCheckpointNow,
  kTerminate,       ///< SIGTERM to the process group
  kKill,            ///< SIGKILL to the process group
  kDeviceStuck,     ///< the child outlived SIGKILL: quarantine its devices
  kFlushLog,        ///< send what is left of the log and the checkpoints, then `log_flushed`
  kPublish,         ///< hash, record and upload the results, then `published`
  kAbandonPublish,  ///< stop uploading; `published` is still called
  kReport,          ///< CompleteAttempt or ReleaseLease by `ending`, then `reported`
  kRemove,          ///< the server has the ending: delete the directory; the attempt is over
  kKeep,            ///< the lease is lost: put the directory aside for 24 h; the attempt is over
};

/// Begin here: state machine of one attempt on its worker. Events go in, and acts to carry out come
/// out. It knows no sockets, processes or files, and it gets the time as an argument.
/// attempt_runner.hpp carries out the acts, and the other files of this folder serve it.
///
/// | state | event | next state | acts |
/// | --- | --- | --- | --- |
/// | staging | the inputs are here | starting | kSpawn |
/// | starting | the engine's first message | running | kAnnounce |
/// | running | the child exited | finishing | kPublish if it succeeded, kFlushLog |
/// | finishing | start acknowledged, log and results sent | reporting | kReport |
/// | reporting | the server accepted | over | kRemove |
/// | with a child | cancel, limit, drain | same | kSendCancel, kTerminate, kKill, kDeviceStuck |
/// | any | fenced | over | kKill or kAbandon… first, then kKeep |
///
/// Every path ends in exactly one kRemove or kKeep, after the exit of any child.
class AttemptMachine {
 public:
  enum class State { kStaging, kStarting, kRunning, kFinishing, kReporting, kOver };
  using Acts = std::vector<Act>;

  AttemptMachine(AttemptTimes times, Milliseconds time_limit, Milliseconds stage_timeout);

  /// Starts the attempt: its inputs are to be fetched.
  Acts begin(MonotonicTime now);
  /// Continues an attempt of an earlier daemon, whose child is gone, with the ending recorded so
  /// far.
  Acts recover(Ending ending, MonotonicTime now);

  /// Handles the end of the fetch. `trouble` is the ending if an input could not be fetched.
  Acts staged(std::optional<Ending> trouble, MonotonicTime now);
  /// Handles a system that could not start the engine.
  Acts spawn_failed(std::string message, MonotonicTime now);
  /// Handles the engine's first message.
  Acts engine_started(MonotonicTime now);
  /// Handles the engine's announcement of its result.
  Acts engine_has_result();
  /// Keeps the failure that the engine announced. Its exit decides the ending.
  Acts engine_failed(v1::FailureReason reason, std::string message);
  /// Ends the attempt, because the engine sent invalid messages or none in time.
  Acts engine_broke_protocol(std::string message, MonotonicTime now);
  /// Handles a recorded checkpoint. A drain then stops the engine.
  Acts checkpoint_recorded(MonotonicTime now);
  /// Handles the exit of the child, from which the ending is derived.
  Acts exited(const ChildExit& exit, MonotonicTime now);
  /// Handles the server's acknowledgement of StartAttempt.
  Acts announced(MonotonicTime now);
  /// Handles the end of kFlushLog.
  Acts log_flushed(MonotonicTime now);
  /// Handles the end of kPublish. `trouble` is the ending if the results cannot be published.
  Acts published(std::optional<Ending> trouble, MonotonicTime now);

  enum class Answer {
    kAccepted,
    kAgain,         ///< no contact, or the server is full: send this report again later
    kBlobsMissing,  ///< the server lacks a file: publish anew
    kCancelled,     ///< the job was cancelled: report a cancellation instead
    kRefused,       ///< the server will never accept this report; `message` gives the reason
  };
  /// Handles the server's answer to a report.
  Acts reported(Answer answer, const std::string& message, MonotonicTime now);
  /// Announces the start again after a pause, because StartAttempt got no answer.
  Acts announce_again(MonotonicTime now);

  /// Handles a cancellation of the job.
  Acts cancel(MonotonicTime now);
  /// Asks the engine for a checkpoint.
  Acts checkpoint_now();
  /// Asks for a checkpoint. The engine is stopped when it is recorded or when the drain's time is
  /// over. With `may_end`, an engine whose time limit ends within that time goes on instead.
  Acts drain(MonotonicTime now, bool may_end);
  /// Handles a loss of contact that lasted longer than the server allows a child to live.
  Acts orphaned(MonotonicTime now);
  /// Handles a fence that is no longer valid: the attempt ends without a report.
  Acts fenced(MonotonicTime now);
  /// Kills the child without a grace period, because the daemon was told twice to stop.
  Acts stop_now(MonotonicTime now);

  /// Handles the deadlines that have passed.
  Acts tick(MonotonicTime now);
  /// Returns the earliest time at which tick() has something to do, or nothing.
  std::optional<MonotonicTime> next_deadline() const;

  State state() const { return state_; }
  bool child_alive() const { return child_alive_; }
  const Ending& ending() const { return ending_; }
  /// Returns the name of the state for the log.
  std::string_view state_name() const;

 private:
  /// Reasons for stopping the child. A later member overrules an earlier one.
  enum class Stop {
    kNone,
    kDrain,
    kStageTimeout,
    kOrphaned,
    kTimeLimit,
    kCancel,
    kProtocol,
    kFenced
  };
  enum class Rung { kNone, kAsked, kTerminated, kKilled, kStuck };

  Acts stop(Stop cause, Rung first, MonotonicTime now);
  Acts climb(MonotonicTime now);
  Acts finish(Ending ending, MonotonicTime now);
  Acts maybe_report();
  Acts over(Act last);
  Ending judge(const ChildExit& exit) const;
  Ending judge_crash(int signal, bool killed_for_memory) const;
  Ending judge_status(int status) const;
  Ending ending_of_stop() const;
  /// Formats the duration in seconds with three decimals, e.g. "1.500 s".
  static std::string seconds_text(Milliseconds duration);
  std::optional<MonotonicTime> rung_deadline() const;

  AttemptTimes times_;
  Milliseconds time_limit_;
  Milliseconds stage_timeout_;
  State state_ = State::kStaging;
  Stop stop_ = Stop::kNone;
  Rung rung_ = Rung::kNone;
  MonotonicTime rung_since_{};
  MonotonicTime state_since_{};
  std::optional<MonotonicTime> running_since_;
  std::optional<MonotonicTime> drain_since_;
  std::optional<MonotonicTime> retry_at_;
  Milliseconds retry_delay_{0};
  bool child_alive_ = false;
  bool has_result_ = false;
  bool fenced_ = false;
  bool announce_pending_ = false;
  bool announce_retry_ = false;
  bool flush_pending_ = false;
  bool publish_pending_ = false;
  bool report_in_flight_ = false;
  int republished_ = 0;
  std::optional<Ending> announced_failure_;  ///< failure that the engine announced
  std::string protocol_trouble_;
  Ending ending_;
};

}  // namespace quasi
