// Decides how an attempt ended from the exit of its engine and from the reason why it was stopped.

#include <cstring>

#include "quasi/v1/engine.pb.h"
#include "workers/daemon/attempt/attempt_machine.hpp"

namespace quasi {

std::string AttemptMachine::seconds_text(Milliseconds duration) {
  const std::string thousandths = std::to_string(1000 + duration.count() % 1000).substr(1);
  return std::to_string(duration.count() / 1000) + "." + thousandths + " s";
}

Ending AttemptMachine::judge(const ChildExit& exit) const {
  Ending ending;
  if (stop_ == Stop::kCancel || stop_ == Stop::kProtocol)
    ending = ending_of_stop();
  else if (exit.exit_status == v1::ENGINE_EXIT_OK && has_result_)
    ending = Ending::succeeded();  // A success wins over every request to stop.
  else if (stop_ != Stop::kNone)
    ending = ending_of_stop();
  else if (exit.signal)
    ending = judge_crash(*exit.signal, exit.killed_for_memory);
  else
    ending = judge_status(exit.exit_status.value_or(v1::ENGINE_EXIT_UNEXPECTED));
  ending.exit_status = exit.exit_status;
  ending.signal = exit.signal;
  return ending;
}

Ending AttemptMachine::judge_crash(int signal, bool killed_for_memory) const {
  if (killed_for_memory)
    return Ending::failed(v1::FAILURE_REASON_HOST_OOM,
                          "the kernel killed the engine: the host is out of memory");
  return Ending::failed(
      v1::FAILURE_REASON_CHILD_CRASHED,
      "the engine died of signal " + std::to_string(signal) + " (" + strsignal(signal) + ")");
}

Ending AttemptMachine::judge_status(int status) const {
  const auto failed = [&](v1::FailureReason reason, const std::string& otherwise) {
    return Ending::failed(reason, announced_failure_ ? announced_failure_->message : otherwise);
  };
  switch (status) {
    case v1::ENGINE_EXIT_OK:
      return Ending::failed(v1::FAILURE_REASON_PROTOCOL,
                            "the engine exited with status 0 but announced no result");
    case v1::ENGINE_EXIT_INVALID_INPUT:
      return failed(v1::FAILURE_REASON_INVALID_INPUT, "the engine rejected the input");
    case v1::ENGINE_EXIT_NUMERICAL:
      return failed(v1::FAILURE_REASON_NUMERICAL, "the calculation did not converge");
    case v1::ENGINE_EXIT_OUT_OF_MEMORY:
      return failed(announced_failure_ && announced_failure_->reason == v1::FAILURE_REASON_HOST_OOM
                        ? v1::FAILURE_REASON_HOST_OOM
                        : v1::FAILURE_REASON_GPU_OOM,
                    "the engine ran out of memory");
    case v1::ENGINE_EXIT_DEVICE_FAULT:
      return failed(v1::FAILURE_REASON_GPU_FAULT, "the device failed");
    case v1::ENGINE_EXIT_STORAGE:
      return failed(v1::FAILURE_REASON_STORAGE, "the engine could not write its files");
    case v1::ENGINE_EXIT_CANCELLED:
      return Ending::failed(v1::FAILURE_REASON_PROTOCOL,
                            "the engine stopped as cancelled, but the job was not cancelled");
    case v1::ENGINE_EXIT_UNEXPECTED:
      return failed(v1::FAILURE_REASON_ENGINE_ERROR,
                    "the engine met an error that it does not know; its log names it");
    case v1::ENGINE_EXIT_USAGE:
      return failed(v1::FAILURE_REASON_ENGINE_ERROR,
                    "the engine cannot be driven by this worker: it is of another version, or was "
                    "built without the service; install quasi-worker and quasi-engine from one "
                    "package");
    case v1::ENGINE_EXIT_BACKEND_ABSENT:
      return failed(v1::FAILURE_REASON_ENGINE_ERROR,
                    "the engine was built without this kind or for another device; install an "
                    "engine that has both");
    default:
      return failed(v1::FAILURE_REASON_ENGINE_ERROR,
                    "the engine exited with the unknown status " + std::to_string(status));
  }
}

Ending AttemptMachine::ending_of_stop() const {
  switch (stop_) {
    case Stop::kCancel:
      return Ending::cancelled();
    case Stop::kTimeLimit:
      return Ending::failed(v1::FAILURE_REASON_TIME_LIMIT,
                            "ran longer than its limit of " + seconds_text(time_limit_));
    case Stop::kProtocol:
      return Ending::failed(v1::FAILURE_REASON_PROTOCOL, protocol_trouble_);
    case Stop::kStageTimeout:
      return Ending::released(
          v1::RELEASE_REASON_STAGE_TIMEOUT,
          "the inputs could not be fetched within " + seconds_text(stage_timeout_));
    case Stop::kOrphaned:
      return Ending::released(v1::RELEASE_REASON_RESTART,
                              "stopped after too long without contact to the server");
    default:
      return Ending::released(v1::RELEASE_REASON_DRAIN, "the worker is shutting down");
  }
}

}  // namespace quasi
