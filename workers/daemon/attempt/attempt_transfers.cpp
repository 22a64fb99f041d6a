// Transfers between an attempt and the server: inputs, the start, results and the report.

#include <algorithm>

#include "proto/wire/limits.hpp"
#include "proto/wire/status.hpp"
#include "workers/daemon/attempt/attempt_runner.hpp"
#include "workers/daemon/attempt/one_line.hpp"
#include "workers/daemon/error.hpp"
#include "workers/daemon/ports/transient.hpp"

namespace quasi {
namespace {

constexpr Milliseconds kTransferRetry{2'000};

/// Carries the failure of a transfer out of the input cache.
struct TransferFailure : std::runtime_error {
  explicit TransferFailure(grpc::Status why)
      : std::runtime_error(why.error_message()), status(std::move(why)) {}
  grpc::Status status;
};

}  // namespace

void AttemptRunner::stage() {
  if (grant_.spec().inputs().empty() && !grant_.has_checkpoint())
    return perform(machine_.staged(std::nullopt, now()));
  auto trouble = std::make_shared<std::optional<Ending>>();
  auto again = std::make_shared<bool>(false);
  ports_.background.run(
      [trouble, again, abandon = abandon_, ports = ports_, grant = grant_, paths = paths_] {
        const auto provide = [&](const std::string& digest, std::uint64_t size_bytes,
                                 const std::filesystem::path& to) {
          ports.files.remove_tree(to);
          ports.inputs.provide(digest, size_bytes, to, [&](const std::filesystem::path& part) {
            const grpc::Status status = ports.blobs.download(digest, size_bytes, part, *abandon);
            if (!status.ok()) throw TransferFailure(status);
          });
        };
        try {
          for (const auto& input : grant.spec().inputs())
            provide(input.digest(), input.size_bytes(), paths.inputs / input.slot());
          ports.files.make_read_only(paths.inputs);
          if (const auto& checkpoint = grant.checkpoint(); grant.has_checkpoint())
            provide(checkpoint.digest(), checkpoint.size_bytes(),
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

void AttemptRunner::announce() {
  if (!hooks_.in_contact()) return perform(machine_.announce_again(now()));
  v1::StartAttemptRequest request;
  *request.mutable_attempt() = grant_.attempt();
  if (isolation_) *request.mutable_isolation() = *isolation_;
  ports_.server.start_attempt(request, [weak = weak_from_this()](const grpc::Status& status,
                                                                 const v1::StartAttemptResponse&) {
    if (const auto self = weak.lock()) self->announce_answered(status);
  });
}

void AttemptRunner::announce_answered(const grpc::Status& status) {
  const std::string reason = wire::reason_of(status);
  if (reason == wire::reason::kFenced) return perform(machine_.fenced(now()));
  if (status.ok()) hooks_.contacted();
  // A job that is being cancelled cannot start. The directive to stop arrives separately.
  if (status.ok() || reason == wire::reason::kWrongState) return perform(machine_.announced(now()));
  perform(machine_.announce_again(now()));
}

void AttemptRunner::flush() {
  // An engine may have completed a checkpoint and died before it announced it.
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
                            .peak_ram_bytes = usage_.peak_ram_bytes,
                            .peak_gpu_bytes = peak_gpu_bytes_};
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
                     one_line("the results could not be uploaded: " + status.error_message(),
                              limits::kFailureMessageBytes)),
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
    failure->set_message(one_line(ending.message, limits::kFailureMessageBytes));
    if (ending.exit_status) failure->set_exit_status(*ending.exit_status);
    if (ending.signal) failure->set_signal(*ending.signal);
  }
  request.mutable_usage()->set_wall_seconds(wall_seconds_);
  request.mutable_usage()->set_peak_ram_bytes(static_cast<std::uint64_t>(usage_.peak_ram_bytes));
  request.mutable_usage()->set_peak_gpu_bytes(static_cast<std::uint64_t>(peak_gpu_bytes_));
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
    request.set_message(one_line(ending.message, limits::kReasonBytes));
    return ports_.server.release(
        request,
        [weak = weak_from_this()](const grpc::Status& status, const v1::ReleaseLeaseResponse&) {
          if (const auto self = weak.lock()) self->report_answered(status);
        });
  }
  const v1::CompleteAttemptRequest request = completion();
  if (!request.has_succeeded()) {  // The outcome of a success was recorded before the upload.
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

}  // namespace quasi
