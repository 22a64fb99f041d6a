#include "workers/daemon/attempt/attempt_runner.hpp"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "proto/wire/limits.hpp"
#include "proto/wire/packet_socket.hpp"
#include "proto/wire/status.hpp"
#include "workers/daemon/attempt/engine_launch.hpp"
#include "workers/daemon/error.hpp"
#include "workers/daemon/ports/transient.hpp"

namespace quasi {
namespace {

using google::protobuf::util::TimeUtil;
constexpr Milliseconds kPumpInterval{1'000};
constexpr Milliseconds kTransferRetry{2'000};
// Where the server names no limit, none is meant; a month stands for it, since time points are
// added.
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

/// One line within the wire's limit, cut between characters.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  if (text.size() > limits::kFailureMessageBytes) {
    std::size_t end = limits::kFailureMessageBytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    text.resize(end);
  }
  return text;
}

/// What is wrong with a progress report, or "".
std::string progress_trouble(const v1::Progress& progress) {
  if (!is_plain(progress.phase(), limits::kPhaseBytes)) return "a phase that is no short noun";
  if (progress.metrics().size() > limits::kMetrics) return "more than 16 metrics";
  if (progress.done() < 0 || progress.total() < 0) return "a negative count";
  for (const auto& [name, value] : progress.metrics())
    if (!is_plain(name, limits::kMetricNameBytes) || !std::isfinite(value))
      return "the metric '" + name.substr(0, 64) + "', whose name or value cannot be";
  return {};
}

/// A transfer that failed, on its way out of the input cache.
struct TransferFailure : std::runtime_error {
  explicit TransferFailure(grpc::Status why)
      : std::runtime_error(why.error_message()), status(std::move(why)) {}
  grpc::Status status;
};

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
      ports_.files, ports_.server, ports_.blobs, ports_.background, ports_.log, grant_,
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
                                        "the job's settings take " + std::to_string(size) +
                                            " bytes; " + std::to_string(kMaxPacketBytes) +
                                            " can be handed to the engine: put them into the deck"),
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
      return perform(machine_.drain(now()));
    case v1::DIRECTIVE_FENCED:
      return perform(machine_.fenced(now()));
    default:
      return;
  }
}

void AttemptRunner::perform(AttemptMachine::Acts acts) {
  todo_.insert(todo_.end(), acts.begin(), acts.end());
  if (performing_) return;  // whoever is performing takes these up as well
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

void AttemptRunner::stage() {
  if (grant_.spec().inputs().empty() && !grant_.has_checkpoint())
    return perform(machine_.staged(std::nullopt, now()));
  auto trouble = std::make_shared<std::optional<Ending>>();
  auto again = std::make_shared<bool>(false);
  ports_.background.run(
      [trouble, again, abandon = abandon_, ports = ports_, grant = grant_, paths = paths_] {
        const auto place = [&](const std::string& digest, std::uint64_t size_bytes,
                               const std::filesystem::path& to) {
          ports.files.remove_tree(to);
          ports.inputs.place(digest, size_bytes, to, [&](const std::filesystem::path& part) {
            const grpc::Status status = ports.blobs.download(digest, size_bytes, part, *abandon);
            if (!status.ok()) throw TransferFailure(status);
          });
        };
        try {
          for (const auto& input : grant.spec().inputs())
            place(input.digest(), input.size_bytes(), paths.inputs / input.slot());
          ports.files.make_read_only(paths.inputs);
          if (const auto& checkpoint = grant.checkpoint(); grant.has_checkpoint())
            place(checkpoint.digest(), checkpoint.size_bytes(),
                  paths.checkpoints / ("ckpt-" + std::to_string(checkpoint.step())));
        } catch (const TransferFailure& failure) {
          *again = is_transient(failure.status) && !*abandon;
          *trouble =
              Ending::failed(v1::FAILURE_REASON_STORAGE,
                             std::string("an input could not be fetched: ") + failure.what());
        } catch (const StorageFailure& failure) {
          *trouble = Ending::failed(v1::FAILURE_REASON_STORAGE, failure.what());
        }
      },
      [weak = weak_from_this(), trouble, again] {
        const auto self = weak.lock();
        if (!self) return;
        if (*again && !*self->abandon_)
          self->restage_at_ = self->now() + kTransferRetry;
        else
          self->perform(self->machine_.staged(std::move(*trouble), self->now()));
      });
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
  // What cannot be sent is not repeated: signals follow the messages.
  return child_ && child_->send(command);
}

void AttemptRunner::on_report(const v1::EngineReport& report) {
  switch (report.report_case()) {
    case v1::EngineReport::kStarted:
      engine_version_ = report.started().version();
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
      return perform(
          machine_.engine_failed(report.failed().reason(), one_line(report.failed().message())));
    case v1::EngineReport::REPORT_NOT_SET:
      return perform(machine_.engine_broke_protocol("the engine sent an empty message", now()));
  }
}

void AttemptRunner::on_garbage() {
  perform(machine_.engine_broke_protocol("the engine sent bytes that are no message", now()));
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

void AttemptRunner::announce() {
  if (!hooks_.in_contact()) return perform(machine_.announce_again(now()));
  v1::StartAttemptRequest request;
  *request.mutable_attempt() = grant_.attempt();
  ports_.server.start_attempt(request, [weak = weak_from_this()](const grpc::Status& status,
                                                                 const v1::StartAttemptResponse&) {
    if (const auto self = weak.lock()) self->announce_answered(status);
  });
}

void AttemptRunner::announce_answered(const grpc::Status& status) {
  const std::string reason = wire::reason_of(status);
  if (reason == wire::reason::kFenced) return perform(machine_.fenced(now()));
  if (status.ok()) hooks_.contacted();
  // A job that is being cancelled cannot start; the directive to stop is on its way.
  if (status.ok() || reason == wire::reason::kWrongState) return perform(machine_.announced(now()));
  perform(machine_.announce_again(now()));
}

void AttemptRunner::flush() {
  // An engine may have completed a checkpoint without having lived to announce it.
  const Ending::Kind how = machine_.ending().kind;
  if (how == Ending::Kind::kSucceeded)
    checkpoints_->abandon();
  else if (how != Ending::Kind::kCancelled)
    offer_newest_checkpoint();
  log_shipper_->flush(
      [this] { checkpoints_->flush([this] { perform(machine_.log_flushed(now())); }); });
}

void AttemptRunner::publish() {
  struct Work {
    Publication publication;
    grpc::Status status;
  };
  auto work = std::make_shared<Work>();
  const ManifestFacts facts{.engine_version = engine_version_,
                            .devices = devices_,
                            .wall_seconds = wall_seconds_,
                            .peak_ram_bytes = usage_.peak_ram_bytes};
  ports_.background.run(
      [work, facts, abandon = abandon_, ports = ports_, grant = grant_, paths = paths_] {
        work->publication = prepare_publication(ports.files, ports.store, grant, facts);
        if (work->publication.trouble) return;
        for (const auto& artifact : work->publication.request.succeeded().artifacts()) {
          if (*abandon) return;
          work->status = ports.blobs.upload(paths.outputs / artifact.name(), artifact.digest(),
                                            artifact.size_bytes(), *abandon);
          if (!work->status.ok()) return;
        }
      },
      [weak = weak_from_this(), work] {
        const auto self = weak.lock();
        if (!self) return;
        if (work->publication.trouble)
          return self->perform(self->machine_.published(work->publication.trouble, self->now()));
        self->publication_ = std::move(work->publication.request);
        self->uploaded(work->status);
      });
}

void AttemptRunner::uploaded(const grpc::Status& status) {
  if (status.ok() || *abandon_) return perform(machine_.published(std::nullopt, now()));
  if (is_transient(status)) {
    republish_at_ = now() + kTransferRetry;
    return;
  }
  perform(machine_.published(
      Ending::failed(v1::FAILURE_REASON_STORAGE,
                     one_line("the results could not be uploaded: " + status.error_message())),
      now()));
}

v1::CompleteAttemptRequest AttemptRunner::completion() const {
  const Ending& ending = machine_.ending();
  if (ending.kind == Ending::Kind::kSucceeded) return publication_;
  v1::CompleteAttemptRequest request;
  *request.mutable_attempt() = grant_.attempt();
  if (ending.kind == Ending::Kind::kCancelled) {
    request.mutable_cancelled();
  } else {
    auto* failure = request.mutable_failed();
    failure->set_reason(ending.reason);
    failure->set_message(one_line(ending.message));
    if (ending.exit_status) failure->set_exit_status(*ending.exit_status);
    if (ending.signal) failure->set_signal(*ending.signal);
  }
  request.mutable_usage()->set_wall_seconds(wall_seconds_);
  request.mutable_usage()->set_peak_ram_bytes(static_cast<std::uint64_t>(usage_.peak_ram_bytes));
  return request;
}

void AttemptRunner::report() {
  if (!hooks_.in_contact())
    return perform(machine_.reported(AttemptMachine::Answer::kAgain, {}, now()));
  const Ending& ending = machine_.ending();
  if (ending.kind == Ending::Kind::kReleased) {
    v1::ReleaseLeaseRequest request;
    *request.mutable_attempt() = grant_.attempt();
    request.set_reason(ending.release);
    request.set_message(one_line(ending.message).substr(0, limits::kReasonBytes));
    return ports_.server.release(
        request,
        [weak = weak_from_this()](const grpc::Status& status, const v1::ReleaseLeaseResponse&) {
          if (const auto self = weak.lock()) self->report_answered(status);
        });
  }
  const v1::CompleteAttemptRequest request = completion();
  if (!request.has_succeeded()) {  // a success was recorded before it was uploaded
    try {
      ports_.store.record_outcome(request);
    } catch (const StorageFailure& failure) {
      ports_.log.warning("outcome_not_recorded", {{"fence", fence()}, {"why", failure.what()}});
    }
  }
  ports_.server.complete(request, [weak = weak_from_this()](const grpc::Status& status,
                                                            const v1::CompleteAttemptResponse&) {
    if (const auto self = weak.lock()) self->report_answered(status);
  });
}

void AttemptRunner::report_answered(const grpc::Status& status) {
  using Answer = AttemptMachine::Answer;
  const std::string reason = wire::reason_of(status);
  if (status.ok()) hooks_.contacted();
  if (reason == wire::reason::kFenced || reason == wire::reason::kAttempt)
    return perform(machine_.fenced(now()));
  Answer answer = Answer::kRefused;
  if (status.ok())
    answer = Answer::kAccepted;
  else if (reason == wire::reason::kInputsMissing)
    answer = Answer::kBlobsMissing;
  else if (reason == wire::reason::kWrongState)
    answer = Answer::kCancelled;
  else if (is_transient(status) || reason == wire::reason::kWorker)
    answer = Answer::kAgain;
  if (answer != Answer::kAccepted)
    ports_.log.warning("report_not_accepted", {{"fence", fence()},
                                               {"code", wire::code_name(status.error_code())},
                                               {"reason", reason},
                                               {"why", status.error_message()}});
  perform(machine_.reported(answer, status.error_message(), now()));
}

void AttemptRunner::finish_over(bool keep) {
  over_ = true;
  kept_ = keep;
  static constexpr const char* kNames[]{"succeeded", "failed", "cancelled", "released"};
  nlohmann::json event = facts();
  event["ending"] = keep ? "fenced" : kNames[static_cast<int>(machine_.ending().kind)];
  if (!machine_.ending().message.empty()) event["message"] = machine_.ending().message;
  ports_.log.info("attempt_over", event);
  try {
    if (keep)
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
