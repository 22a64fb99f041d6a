#include "workers/daemon/attempt/attempt_machine.hpp"

#include <algorithm>
#include <array>

#include "quasi/v1/engine.pb.h"

namespace quasi {
namespace {

constexpr int kMostRepublications = 3;

void append(AttemptMachine::Acts& acts, const AttemptMachine::Acts& more) {
  acts.insert(acts.end(), more.begin(), more.end());
}

}  // namespace

AttemptMachine::AttemptMachine(AttemptTimes times, Milliseconds time_limit,
                               Milliseconds stage_timeout)
    : times_(times), time_limit_(time_limit), stage_timeout_(stage_timeout) {}

AttemptMachine::Acts AttemptMachine::begin(MonotonicTime now) {
  state_since_ = now;
  return {Act::kStage};
}

AttemptMachine::Acts AttemptMachine::recover(Ending ending, MonotonicTime now) {
  // A success is accepted after StartAttempt only. A restarted daemon does not know whether that
  // call reached the server, so it announces the start again.
  announce_pending_ = ending.kind == Ending::Kind::kSucceeded;
  Acts acts;
  if (announce_pending_) acts.push_back(Act::kAnnounce);
  append(acts, finish(std::move(ending), now));
  return acts;
}

AttemptMachine::Acts AttemptMachine::staged(std::optional<Ending> trouble, MonotonicTime now) {
  if (state_ != State::kStaging) return {};
  if (fenced_) return over(Act::kRemove);
  if (stop_ != Stop::kNone) return finish(ending_of_stop(), now);
  if (trouble) return finish(std::move(*trouble), now);
  state_ = State::kStarting;
  state_since_ = now;
  child_alive_ = true;
  return {Act::kSpawn};
}

AttemptMachine::Acts AttemptMachine::spawn_failed(std::string message, MonotonicTime now) {
  child_alive_ = false;
  return finish(Ending::failed(v1::FAILURE_REASON_PROTOCOL,
                               "the engine could not be started: " + std::move(message)),
                now);
}

AttemptMachine::Acts AttemptMachine::engine_started(MonotonicTime now) {
  if (state_ != State::kStarting)
    return engine_broke_protocol("the engine announced its start twice", now);
  state_ = State::kRunning;
  state_since_ = now;
  running_since_ = now;
  announce_pending_ = true;
  return {Act::kAnnounce};
}

AttemptMachine::Acts AttemptMachine::engine_has_result() {
  has_result_ = true;
  return {};
}

AttemptMachine::Acts AttemptMachine::engine_failed(v1::FailureReason reason, std::string message) {
  announced_failure_ = Ending::failed(reason, std::move(message));
  return {};
}

AttemptMachine::Acts AttemptMachine::engine_broke_protocol(std::string message, MonotonicTime now) {
  if (protocol_trouble_.empty()) protocol_trouble_ = std::move(message);
  return stop(Stop::kProtocol, Rung::kKilled, now);
}

AttemptMachine::Acts AttemptMachine::checkpoint_recorded(MonotonicTime now) {
  if (!drain_since_) return {};
  return stop(Stop::kDrain, Rung::kAsked, now);
}

AttemptMachine::Acts AttemptMachine::exited(const ChildExit& exit, MonotonicTime now) {
  if (!child_alive_) return {};
  child_alive_ = false;
  if (fenced_) return over(Act::kKeep);
  return finish(judge(exit), now);
}

AttemptMachine::Acts AttemptMachine::announced(MonotonicTime) {
  announce_pending_ = false;
  retry_delay_ = Milliseconds(0);
  return maybe_report();
}

AttemptMachine::Acts AttemptMachine::announce_again(MonotonicTime now) {
  if (!announce_pending_ || state_ == State::kOver) return {};
  announce_retry_ = true;
  retry_delay_ = std::clamp(retry_delay_ * 2, times_.retry_first, times_.retry_most);
  retry_at_ = now + retry_delay_;
  return {};
}

AttemptMachine::Acts AttemptMachine::log_flushed(MonotonicTime) {
  flush_pending_ = false;
  return maybe_report();
}

AttemptMachine::Acts AttemptMachine::published(std::optional<Ending> trouble, MonotonicTime) {
  if (!publish_pending_) return {};
  publish_pending_ = false;
  if (fenced_) return over(Act::kKeep);
  if (trouble && ending_.kind == Ending::Kind::kSucceeded) ending_ = std::move(*trouble);
  return maybe_report();
}

AttemptMachine::Acts AttemptMachine::reported(Answer answer, const std::string& message,
                                              MonotonicTime now) {
  if (state_ != State::kReporting) return {};
  report_in_flight_ = false;
  const bool was_success = ending_.kind == Ending::Kind::kSucceeded;
  if (answer == Answer::kAccepted) return over(Act::kRemove);
  if (answer == Answer::kAgain) {
    retry_delay_ = std::clamp(retry_delay_ * 2, times_.retry_first, times_.retry_most);
    retry_at_ = now + retry_delay_;
    return {};
  }
  if (answer == Answer::kBlobsMissing) {
    if (was_success && republished_++ < kMostRepublications) {
      state_ = State::kFinishing;
      publish_pending_ = true;
      return {Act::kPublish};
    }
    ending_ = Ending::failed(v1::FAILURE_REASON_STORAGE,
                             "the server keeps losing the uploaded results: " + message);
  } else if (answer == Answer::kCancelled) {
    if (ending_.kind == Ending::Kind::kCancelled) return over(Act::kKeep);
    ending_ = Ending::cancelled();
  } else {
    if (!was_success) return over(Act::kKeep);
    ending_ =
        Ending::failed(v1::FAILURE_REASON_PROTOCOL, "the server refused the results: " + message);
  }
  report_in_flight_ = true;
  return {Act::kReport};
}

AttemptMachine::Acts AttemptMachine::cancel(MonotonicTime now) {
  if (state_ == State::kFinishing) {
    ending_ = Ending::cancelled();
    if (publish_pending_) return {Act::kAbandonPublish};
    return {};
  }
  // A report that was sent and not yet answered cannot be taken back: the server decides whether it
  // or the cancel came first. A report that waits to be sent again becomes that of a cancelled
  // attempt.
  if (state_ == State::kReporting && !report_in_flight_) ending_ = Ending::cancelled();
  return stop(Stop::kCancel, Rung::kAsked, now);
}

AttemptMachine::Acts AttemptMachine::checkpoint_now() {
  if (state_ != State::kRunning) return {};
  return {Act::kSendCheckpointNow};
}

AttemptMachine::Acts AttemptMachine::drain(MonotonicTime now, bool may_end) {
  if (drain_since_) return {};
  const bool ends_in_time = running_since_ && state_ == State::kRunning &&
                            *running_since_ + time_limit_ <= now + times_.drain_timeout;
  if (may_end && ends_in_time) return {Act::kSendCheckpointNow};
  drain_since_ = now;
  if (state_ == State::kStaging) return stop(Stop::kDrain, Rung::kAsked, now);
  if (!child_alive_) return {};
  return {Act::kSendCheckpointNow};
}

AttemptMachine::Acts AttemptMachine::orphaned(MonotonicTime now) {
  return stop(Stop::kOrphaned, Rung::kAsked, now);
}

AttemptMachine::Acts AttemptMachine::fenced(MonotonicTime now) {
  if (fenced_ || state_ == State::kOver) return {};
  fenced_ = true;
  retry_at_.reset();
  if (state_ == State::kStaging || child_alive_) return stop(Stop::kFenced, Rung::kKilled, now);
  if (publish_pending_) return {Act::kAbandonPublish};
  return over(Act::kKeep);
}

AttemptMachine::Acts AttemptMachine::stop_now(MonotonicTime now) {
  return stop(Stop::kDrain, Rung::kKilled, now);
}

AttemptMachine::Acts AttemptMachine::stop(Stop cause, Rung first, MonotonicTime now) {
  if (state_ == State::kStaging) {
    const bool abandoned = stop_ != Stop::kNone;
    stop_ = std::max(stop_, cause);
    if (abandoned) return {};
    return {Act::kAbandonStaging};
  }
  if (!child_alive_) return {};
  stop_ = std::max(stop_, cause);
  if (first <= rung_) return {};
  rung_ = first;
  rung_since_ = now;
  const Act act = first == Rung::kKilled ? Act::kKill : Act::kSendCancel;
  return {act};
}

std::optional<MonotonicTime> AttemptMachine::rung_deadline() const {
  if (rung_ == Rung::kAsked) return rung_since_ + times_.cancel_grace;
  if (rung_ == Rung::kTerminated) return rung_since_ + times_.terminate_grace;
  if (rung_ == Rung::kKilled) return rung_since_ + times_.kill_grace;
  return std::nullopt;
}

AttemptMachine::Acts AttemptMachine::climb(MonotonicTime now) {
  const auto deadline = rung_deadline();
  if (!child_alive_ || !deadline || now < *deadline) return {};
  rung_since_ = now;
  switch (rung_) {
    case Rung::kAsked:
      rung_ = Rung::kTerminated;
      return {Act::kTerminate};
    case Rung::kTerminated:
      rung_ = Rung::kKilled;
      return {Act::kKill};
    default:
      rung_ = Rung::kStuck;
      return {Act::kDeviceStuck};
  }
}

AttemptMachine::Acts AttemptMachine::tick(MonotonicTime now) {
  Acts acts;
  if (state_ == State::kStaging && now >= state_since_ + stage_timeout_)
    append(acts, stop(Stop::kStageTimeout, Rung::kAsked, now));
  if (state_ == State::kStarting && stop_ < Stop::kProtocol &&
      now >= state_since_ + times_.start_timeout)
    append(acts, engine_broke_protocol("the engine sent no message within " +
                                           seconds_text(times_.start_timeout) + " of its start",
                                       now));
  if (state_ == State::kRunning && stop_ < Stop::kTimeLimit && now >= *running_since_ + time_limit_)
    append(acts, stop(Stop::kTimeLimit, Rung::kAsked, now));
  if (child_alive_ && drain_since_ && stop_ < Stop::kDrain &&
      now >= *drain_since_ + times_.drain_timeout)
    append(acts, stop(Stop::kDrain, Rung::kAsked, now));
  append(acts, climb(now));
  if (retry_at_ && now >= *retry_at_) {
    retry_at_.reset();
    if (announce_retry_) {
      announce_retry_ = false;
      acts.push_back(Act::kAnnounce);
    } else if (state_ == State::kReporting) {
      report_in_flight_ = true;
      acts.push_back(Act::kReport);
    }
  }
  return acts;
}

std::optional<MonotonicTime> AttemptMachine::next_deadline() const {
  std::optional<MonotonicTime> next = retry_at_;
  const auto consider = [&](MonotonicTime time) { next = next ? std::min(*next, time) : time; };
  if (state_ == State::kStaging && stop_ == Stop::kNone) consider(state_since_ + stage_timeout_);
  if (state_ == State::kStarting && stop_ < Stop::kProtocol)
    consider(state_since_ + times_.start_timeout);
  if (state_ == State::kRunning && stop_ < Stop::kTimeLimit)
    consider(*running_since_ + time_limit_);
  if (child_alive_ && drain_since_ && stop_ < Stop::kDrain)
    consider(*drain_since_ + times_.drain_timeout);
  const std::optional<MonotonicTime> rung = rung_deadline();
  if (child_alive_ && rung) consider(*rung);
  return next;
}

AttemptMachine::Acts AttemptMachine::finish(Ending ending, MonotonicTime now) {
  ending_ = std::move(ending);
  state_ = State::kFinishing;
  state_since_ = now;
  flush_pending_ = true;
  publish_pending_ = ending_.kind == Ending::Kind::kSucceeded;
  Acts acts;
  if (publish_pending_) acts.push_back(Act::kPublish);
  acts.push_back(Act::kFlushLog);
  return acts;
}

AttemptMachine::Acts AttemptMachine::maybe_report() {
  if (state_ != State::kFinishing || fenced_ || flush_pending_ || publish_pending_ ||
      announce_pending_)
    return {};
  state_ = State::kReporting;
  report_in_flight_ = true;
  return {Act::kReport};
}

AttemptMachine::Acts AttemptMachine::over(Act last) {
  state_ = State::kOver;
  retry_at_.reset();
  return {last};
}

std::string_view AttemptMachine::state_name() const {
  static constexpr std::array<std::string_view, 6> kNames = {"staging",   "starting",  "running",
                                                             "finishing", "reporting", "over"};
  return kNames.at(static_cast<std::size_t>(state_));
}

}  // namespace quasi
