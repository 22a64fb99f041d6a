#include "workers/daemon/attempt/attempt_runner.hpp"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "proto/wire/limits.hpp"
#include "proto/wire/packet_socket.hpp"
#include "proto/wire/status.hpp"
#include "workers/daemon/attempt/engine_launch.hpp"
#include "workers/daemon/attempt/one_line.hpp"
#include "workers/daemon/error.hpp"
#include "workers/daemon/ports/transient.hpp"

namespace quasi {
namespace {

using google::protobuf::util::TimeUtil;
constexpr Milliseconds kPumpInterval{1'000};
// Stands for "no limit". A month is used because time points are added to it.
constexpr Milliseconds kNoLimit{std::chrono::hours(24 * 31)};

Milliseconds or_none(const google::protobuf::Duration& duration) {
  const Milliseconds value(TimeUtil::DurationToMilliseconds(duration));
  return value.count() > 0 ? std::min(value, kNoLimit) : kNoLimit;
}

bool is_plain(const std::string& text, std::size_t most_bytes) {
  return text.size() <= most_bytes && std::none_of(text.begin(), text.end(), [](unsigned char c) {
           return c < 0x20 || c == 0x7f;
         });
}

v1::Isolation isolation_of(const v1::EngineStarted& started) {
  v1::Isolation isolation;
  isolation.set_whole(started.caged());
  isolation.set_walls(one_line(started.cage(), limits::kWallsBytes));
  return isolation;
}

/// Returns the reason why a progress report is invalid, or "" if it is valid.
std::string progress_trouble(const v1::Progress& progress) {
  if (!is_plain(progress.phase(), limits::kPhaseBytes))
    return "a phase that is empty, too long or not plain text";
  if (progress.metrics().size() > limits::kMetrics) return "more than 16 metrics";
  if (progress.done() < 0 || progress.total() < 0) return "a negative count";
  for (const auto& [name, value] : progress.metrics())
    if (!is_plain(name, limits::kMetricNameBytes) || !std::isfinite(value))
      return "the metric '" + name.substr(0, 64) + "' with an invalid name or value";
  return {};
}

}  // namespace

AttemptRunner::AttemptRunner(const WorkerPorts& ports, const EngineSettings& settings,
                             v1::Grant grant, std::vector<WorkerDevice> devices, Hooks hooks)
    : ports_(ports),
      settings_(settings),
      grant_(std::move(grant)),
      devices_(std::move(devices)),
      hooks_(std::move(hooks)),
      paths_(ports.store.paths(grant_.attempt().fence())),
      machine_(settings.times, or_none(grant_.time_limit()), or_none(grant_.stage_timeout())) {}

nlohmann::json AttemptRunner::facts() const {
  return {{"job", grant_.job_id()}, {"attempt", grant_.attempt().attempt_id()}, {"fence", fence()}};
}

void AttemptRunner::make_shippers() {
  const auto fenced = [this] { perform(machine_.fenced(now())); };
  log_shipper_ = std::make_shared<LogShipper>(ports_.files, ports_.server, grant_.attempt(),
                                              paths_.log, fenced);
  checkpoints_ = std::make_shared<CheckpointShipper>(
      ports_, grant_,
      CheckpointShipper::Hooks{
          .recorded = [this](std::int64_t) { perform(machine_.checkpoint_recorded(now())); },
          .fenced = fenced});
}

void AttemptRunner::begin() {
  ports_.store.create(grant_);
  make_shippers();
  const std::size_t size = start_message(grant_, devices_).ByteSizeLong();
  if (size + 64 > kMaxPacketBytes)
    return perform(
        machine_.recover(Ending::failed(v1::FAILURE_REASON_INVALID_INPUT,
                                        "the job's settings have " + std::to_string(size) +
                                            " bytes; " + std::to_string(kMaxPacketBytes) +
                                            " are allowed; move settings into the deck"),
                         now()));
  perform(machine_.begin(now()));
}

void AttemptRunner::decline(Ending ending) {
  ports_.store.create(grant_);
  make_shippers();
  perform(machine_.recover(std::move(ending), now()));
}

void AttemptRunner::recover(const AttemptStore::Recovered& left) {
  make_shippers();
  Ending ending = Ending::released(v1::RELEASE_REASON_RESTART,
                                   "the worker was restarted and the engine ended with it");
  if (left.outcome && left.outcome->has_succeeded()) {
    ending = Ending::succeeded();
  } else if (left.outcome && left.outcome->has_cancelled()) {
    ending = Ending::cancelled();
  } else if (left.outcome && left.outcome->has_failed()) {
    ending = Ending::failed(left.outcome->failed().reason(), left.outcome->failed().message());
    if (left.outcome->failed().has_exit_status())
      ending.exit_status = left.outcome->failed().exit_status();
    if (left.outcome->failed().has_signal()) ending.signal = left.outcome->failed().signal();
  }
  perform(machine_.recover(std::move(ending), now()));
}

void AttemptRunner::offer_newest_checkpoint() {
  std::int64_t newest = 0;
  std::string name;
  for (const auto& candidate : ports_.files.list(paths_.checkpoints)) {
    constexpr std::string_view kPrefix = "ckpt-";
    if (!candidate.starts_with(kPrefix)) continue;
    char* end = nullptr;
    const std::int64_t step = std::strtoll(candidate.c_str() + kPrefix.size(), &end, 10);
    if (*end == '\0' && step > newest) {
      newest = step;
      name = candidate;
    }
  }
  if (newest > checkpoints_->newest_step()) checkpoints_->offer(paths_.checkpoints / name, newest);
}

void AttemptRunner::obey(v1::Directive directive) {
  switch (directive) {
    case v1::DIRECTIVE_CANCEL:
      return perform(machine_.cancel(now()));
    case v1::DIRECTIVE_CHECKPOINT_NOW:
      return perform(machine_.checkpoint_now());
    case v1::DIRECTIVE_DRAIN:
      return perform(machine_.drain(now(), false));
    case v1::DIRECTIVE_FENCED:
      return perform(machine_.fenced(now()));
    default:
      return;
  }
}

void AttemptRunner::perform(AttemptMachine::Acts acts) {
  todo_.insert(todo_.end(), acts.begin(), acts.end());
  if (performing_) return;  // The call that is already performing takes up these acts too.
  performing_ = true;
  while (!todo_.empty()) {
    const Act next = todo_.front();
    todo_.pop_front();
    act(next);
  }
  performing_ = false;
}

void AttemptRunner::act(Act next) {
  switch (next) {
    case Act::kStage:
      return stage();
    case Act::kAbandonStaging:
    case Act::kAbandonPublish:
      *abandon_ = true;
      return;
    case Act::kSpawn:
      return spawn();
    case Act::kAnnounce:
      return announce();
    case Act::kSendCancel: {
      v1::EngineCommand command;
      command.mutable_cancel();
      send(command);
      return;
    }
    case Act::kSendCheckpointNow: {
      v1::EngineCommand command;
      command.mutable_checkpoint_now();
      send(command);
      return;
    }
    case Act::kTerminate:
      ports_.log.info("engine_terminated", facts());
      return child_->signal_group(SIGTERM);
    case Act::kKill:
      ports_.log.info("engine_killed", facts());
      if (child_) child_->signal_group(SIGKILL);
      return;
    case Act::kDeviceStuck:
      return hooks_.device_stuck("the engine of job " + grant_.job_id() + " outlived SIGKILL");
    case Act::kFlushLog:
      return flush();
    case Act::kPublish:
      return publish();
    case Act::kReport:
      return report();
    case Act::kRemove:
      return finish_over(false);
    case Act::kKeep:
      return finish_over(true);
  }
}

void AttemptRunner::spawn() {
  spawned_at_ = now();
  try {
    child_ = ports_.spawner.spawn(launch_plan(grant_, devices_, settings_, paths_), *this);
    ports_.store.record_child(fence(), child_->identity());
  } catch (const std::runtime_error& failure) {
    child_.reset();
    return perform(machine_.spawn_failed(failure.what(), now()));
  }
  v1::EngineCommand command;
  *command.mutable_start() = start_message(grant_, devices_);
  send(command);
  nlohmann::json event = facts();
  event["pid"] = child_->identity().pid;
  ports_.log.info("engine_started", event);
}

bool AttemptRunner::send(const v1::EngineCommand& command) {
  // A message that cannot be sent is not repeated, because signals follow it.
  return child_ && child_->send(command);
}

void AttemptRunner::on_report(const v1::EngineReport& report) {
  switch (report.report_case()) {
    case v1::EngineReport::kStarted:
      engine_version_ = report.started().version();
      isolation_ = isolation_of(report.started());
      if (!report.started().caged()) {
        nlohmann::json event = facts();
        event["cage"] = isolation_->walls();
        ports_.log.warning("engine_not_caged", event);
        if (settings_.require_cage)
          return perform(machine_.engine_broke_protocol(
              "the worker requires a whole cage and the engine has: " + isolation_->walls(),
              now()));
      }
      return perform(machine_.engine_started(now()));
    case v1::EngineReport::kProgress:
      if (const auto trouble = progress_trouble(report.progress()); !trouble.empty())
        return perform(machine_.engine_broke_protocol("the engine reported " + trouble, now()));
      progress_ = report.progress();
      *progress_->mutable_time() = TimeUtil::GetCurrentTime();
      return;
    case v1::EngineReport::kLog:
      try {
        ports_.files.append_file(paths_.log, report.log().line() + "\n");
      } catch (const StorageFailure& failure) {
        ports_.log.warning("log_not_written", {{"fence", fence()}, {"why", failure.what()}});
      }
      return;
    case v1::EngineReport::kCheckpointReady: {
      const std::filesystem::path name =
          std::filesystem::path(report.checkpoint_ready().path()).filename();
      if (name.empty() || name == ".." || name == ".")
        return perform(
            machine_.engine_broke_protocol("the engine named no checkpoint file", now()));
      return checkpoints_->offer(paths_.checkpoints / name, report.checkpoint_ready().step());
    }
    case v1::EngineReport::kResultReady:
      return perform(machine_.engine_has_result());
    case v1::EngineReport::kFailed:
      return perform(machine_.engine_failed(
          report.failed().reason(),
          one_line(report.failed().message(), limits::kFailureMessageBytes)));
    case v1::EngineReport::REPORT_NOT_SET:
      return perform(machine_.engine_broke_protocol("the engine sent an empty message", now()));
  }
}

void AttemptRunner::on_garbage() {
  perform(machine_.engine_broke_protocol("the engine sent bytes that are not a message", now()));
}

void AttemptRunner::on_exit(const ChildExit& exit, const ChildUsage& usage) {
  usage_ = usage;
  wall_seconds_ = std::chrono::duration<double>(now() - spawned_at_).count();
  perform(machine_.exited(exit, now()));
  nlohmann::json event = facts();
  event["wall_seconds"] = wall_seconds_;
  if (exit.exit_status) event["exit_status"] = *exit.exit_status;
  if (exit.signal) event["signal"] = *exit.signal;
  ports_.log.info("engine_left", event);
  hooks_.child_ended(machine_.ending());
}

void AttemptRunner::finish_over(bool keep) {
  over_ = true;
  // A later daemon finds an engine that still runs by the directory of its attempt.
  kept_ = keep || hooks_.has_stray();
  static constexpr const char* kNames[]{"succeeded", "failed", "cancelled", "released"};
  nlohmann::json event = facts();
  event["ending"] = keep ? "fenced" : kNames[static_cast<int>(machine_.ending().kind)];
  if (!machine_.ending().message.empty()) event["message"] = machine_.ending().message;
  ports_.log.info("attempt_over", event);
  try {
    if (kept_)
      ports_.store.keep(fence());
    else
      ports_.store.remove(fence());
  } catch (const StorageFailure& failure) {
    ports_.log.warning("directory_not_cleared", {{"fence", fence()}, {"why", failure.what()}});
  }
}

void AttemptRunner::tick() {
  if (over_) return;
  perform(machine_.tick(now()));
  if (over_) return;
  const auto due = [&](std::optional<MonotonicTime>& at) {
    if (!at || (now() < *at && !*abandon_)) return false;
    at.reset();
    return true;
  };
  if (due(restage_at_)) {
    if (*abandon_)
      perform(machine_.staged(std::nullopt, now()));
    else
      stage();
  }
  if (due(republish_at_)) {
    if (*abandon_)
      perform(machine_.published(std::nullopt, now()));
    else
      publish();
  }
  if (now() < next_pump_) return;
  next_pump_ = now() + kPumpInterval;
  if (!hooks_.in_contact()) return;
  if (machine_.child_alive() || log_shipper_->wants_retry()) log_shipper_->pump();
  if (checkpoints_->wants_retry()) checkpoints_->pump();
}

std::optional<MonotonicTime> AttemptRunner::next_deadline() const {
  if (over_) return std::nullopt;
  std::optional<MonotonicTime> next = machine_.next_deadline();
  const auto consider = [&](const std::optional<MonotonicTime>& time) {
    if (time) next = next ? std::min(*next, *time) : *time;
  };
  consider(restage_at_);
  consider(republish_at_);
  if (machine_.child_alive() || log_shipper_->wants_retry() || checkpoints_->wants_retry())
    consider(next_pump_);
  return next;
}

std::optional<v1::Progress> AttemptRunner::take_progress() {
  return std::exchange(progress_, std::nullopt);
}

}  // namespace quasi
