#include "workers/daemon/attempt/checkpoint_shipper.hpp"

#include "proto/wire/status.hpp"
#include "workers/daemon/error.hpp"
#include "workers/daemon/ports/transient.hpp"

namespace quasi {

CheckpointShipper::CheckpointShipper(const WorkerPorts& ports, const v1::Grant& grant, Hooks hooks)
    : ports_(ports),
      attempt_(grant.attempt()),
      base_(grant.checkpoint()),
      hooks_(std::move(hooks)),
      newest_step_(base_.step()) {}

void CheckpointShipper::offer(const std::filesystem::path& path, std::int64_t step) {
  if (step <= newest_step_) {
    ports_.log.warning(
        "checkpoint_not_newer",
        {{"fence", attempt_.fence()}, {"step", step}, {"newest_step", newest_step_}});
    return;
  }
  newest_step_ = step;
  next_ = Offer{path, step};
  pump();
}

void CheckpointShipper::pump() {
  if (busy_) return;
  retry_ = false;
  if (!next_) return settle();
  busy_ = true;
  auto upload = std::make_shared<Upload>();
  upload->offer = std::move(*next_);
  next_.reset();
  ports_.background.run(
      [upload, abandon = abandon_, &files = ports_.files, &blobs = ports_.blobs] {
        try {
          upload->digest = files.digest(upload->offer.path);
          upload->size_bytes = files.size_bytes(upload->offer.path);
          upload->status =
              blobs.upload(upload->offer.path, upload->digest, upload->size_bytes, *abandon);
        } catch (const StorageFailure& failure) {
          upload->status = grpc::Status(grpc::StatusCode::DATA_LOSS, failure.what());
        }
      },
      [weak = weak_from_this(), upload] {
        if (const auto self = weak.lock()) self->uploaded(*upload);
      });
}

void CheckpointShipper::uploaded(const Upload& upload) {
  if (!upload.status.ok()) {
    busy_ = false;
    return failed(upload.offer, upload.status);
  }
  v1::RecordCheckpointRequest request;
  *request.mutable_attempt() = attempt_;
  request.set_sequence(base_.sequence() +
                       static_cast<std::uint64_t>(upload.offer.step - base_.step()));
  request.set_step(upload.offer.step);
  request.set_digest(upload.digest);
  request.set_size_bytes(upload.size_bytes);
  ports_.server.record_checkpoint(
      request, [weak = weak_from_this(), offer = upload.offer](
                   const grpc::Status& status, const v1::RecordCheckpointResponse&) {
        if (const auto self = weak.lock()) self->recorded(offer, status);
      });
}

void CheckpointShipper::recorded(const Offer& offer, const grpc::Status& status) {
  busy_ = false;
  if (!status.ok()) return failed(offer, status);
  ports_.log.info("checkpoint_recorded", {{"fence", attempt_.fence()}, {"step", offer.step}});
  hooks_.recorded(offer.step);
  pump();
}

void CheckpointShipper::failed(const Offer& offer, const grpc::Status& status) {
  if (wire::reason_of(status) == wire::reason::kFenced) return hooks_.fenced();
  if (*abandon_) return pump();
  if (did_not_get_through(status)) {
    if (!next_) next_ = offer;
    retry_ = true;
    return;
  }
  // The job can go on without this checkpoint. A later attempt would only start from an earlier
  // step.
  ports_.log.warning(
      "checkpoint_not_recorded",
      {{"fence", attempt_.fence()}, {"step", offer.step}, {"why", status.error_message()}});
  pump();
}

void CheckpointShipper::flush(std::function<void()> done) {
  flushed_ = std::move(done);
  pump();
}

void CheckpointShipper::abandon() {
  *abandon_ = true;
  next_.reset();
  retry_ = false;
}

void CheckpointShipper::settle() {
  if (busy_ || !flushed_) return;
  const auto done = std::move(flushed_);
  flushed_ = nullptr;
  done();
}

}  // namespace quasi
