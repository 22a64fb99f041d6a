// WriteBlob receives one upload on a file thread, one message at a time.

#include <grpcpp/alarm.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "proto/wire/limits.hpp"
#include "server/api/blob_service.hpp"
#include "server/api/calls.hpp"

namespace quasi::server {
namespace {

/// A paused upload asks at least this often whether it may go on.
constexpr std::int64_t kLongestPauseMs = 1'000;

/// The steps follow one another: read a message, handle it on a file thread, read the next one.
/// `this` is not used after a step has called gRPC. A stream whose caller has lost the right to it
/// ends at its next step, or at a tick of the timer while it waits for a message.
class WriteBlobStream : public grpc::ServerReadReactor<v1::WriteBlobRequest> {
 public:
  WriteBlobStream(Services& services, grpc::CallbackServerContext* context,
                  v1::WriteBlobResponse* response, const Admission& admission)
      : services_(services),
        context_(context),
        response_(response),
        caller_(*admission.caller),
        place_(admission.place) {
    services_.idle_uploads.begin(
        this, services_.clock.now().monotonic_ms,
        {.cancel = [context] { context->TryCancel(); }, .end_if_lost = [this] { end_if_lost(); }});
    read();
  }

  void OnReadDone(bool ok) override {
    if (!take_step()) return;
    services_.idle_uploads.touch(this, services_.clock.now().monotonic_ms);
    const bool posted = services_.files.post([this, ok] {
      try {
        ok ? handle() : broken();
      } catch (...) {
        end(to_status(std::current_exception(), "WriteBlob"));
      }
    });
    if (!posted) end(busy_status(services_.draining));
  }
  void OnDone() override { delete this; }

 private:
  /// Waits for the next message.
  void read() {
    const std::lock_guard lock(mutex_);
    is_reading_ = true;
    StartRead(&message_);
  }
  /// Takes the next step from the wait for a message. @return false if it was taken before
  bool take_step() {
    const std::lock_guard lock(mutex_);
    return std::exchange(is_reading_, false);
  }

  std::optional<grpc::Status> lost() const { return lost_right(services_, caller_, "WriteBlob"); }

  void end_if_lost() {
    const auto status = lost();
    if (!status || !take_step()) return;
    if (!services_.files.post([this, status] { keep_and_end(*status); }))
      end(busy_status(services_.draining));
  }

  void end(const grpc::Status& status) {
    services_.idle_uploads.end(this);
    if (session_) services_.uploads.close(session_, this);
    Finish(status);
  }

  void handle() {
    if (const auto status = lost()) return keep_and_end(*status);
    if (!session_) {
      if (!message_.has_header())
        throw Refused(Refusal::kInvalidArgument, wire::reason::kFieldInvalid,
                      "header: the first message must hold it");
      return begin();
    }
    if (!message_.has_data())
      throw Refused(Refusal::kInvalidArgument, wire::reason::kFieldInvalid,
                    "data: every message after the first must hold data");
    if (message_.data().data().size() > limits::kUploadChunkBytes)
      throw Refused(Refusal::kInvalidArgument, wire::reason::kFieldInvalid,
                    "data.data: must have at most " + std::to_string(limits::kUploadChunkBytes) +
                        " bytes, got " + std::to_string(message_.data().data().size()));
    bool complete = false;
    bool checkpoint = false;
    {
      const std::lock_guard lock(session_->mutex);
      require_owned();
      session_->append(message_.data().offset(), message_.data().data());
      complete = session_->offset == session_->size_bytes;
      if (!complete && session_->offset - session_->synced >= limits::kUploadSyncBytes)
        checkpoint = session_->sync();
    }
    const std::int64_t wait_ms = count_bytes(message_.data().data().size());
    if (complete) return publish();
    if (checkpoint) remember([] {});
    read_after(wait_ms);
  }

  /// Counts received bytes. @return the time to wait before the next message, in ms
  std::int64_t count_bytes(std::size_t received_bytes) {
    services_.file_figures.received_bytes += static_cast<std::int64_t>(received_bytes);
    return services_.upload_rates.charge(caller_, static_cast<std::int64_t>(received_bytes),
                                         services_.clock.now().monotonic_ms);
  }

  /// Reads the next message when the rate of the caller allows it.
  void read_after(std::int64_t wait_ms) {
    if (const auto status = lost()) return keep_and_end(*status);
    if (wait_ms == 0) return read();
    // The server makes this stream wait, so it is not idle.
    services_.idle_uploads.touch(this, services_.clock.now().monotonic_ms);
    const std::int64_t pause_ms =
        std::min({wait_ms, services_.options.upload_stream_idle_ms / 2, kLongestPauseMs});
    pause_ = std::make_unique<grpc::Alarm>();
    pause_->Set(std::chrono::system_clock::now() + std::chrono::milliseconds(pause_ms),
                [this, &files = services_.files, &draining = services_.draining](bool) {
                  if (!files.post([this] { read_after(count_bytes(0)); }))
                    end(busy_status(draining));
                });
  }

  void require_owned() {
    if (session_->owner != this)
      throw Refused(Refusal::kAborted, wire::reason::kOffsetMismatch,
                    "another stream continues this upload");
  }

  void begin() {
    const v1::WriteBlobRequest::Header& header = message_.header();
    wire::Violations violations;
    wire::validate(header, violations);
    if (!violations.empty()) return end(to_status(violations));
    if (services_.storage_low)
      throw Refused(Refusal::kResourceExhausted, wire::reason::kStorageLow,
                    "the server's disk is nearly full; uploads are refused")
          .retry_in(60'000);
    services_.upload_rates.require_turn(caller_, services_.clock.now().monotonic_ms);
    digest_ = header.digest();
    size_bytes_ = header.size_bytes();
    upload_id_ = upload_key(caller_, header.upload_id());
    const bool posted = services_.readers.read([this](ReadStore& store) {
      try {
        const auto size = store.blob_size(scope_of(caller_), digest_);
        if (size && static_cast<std::uint64_t>(*size) != size_bytes_)
          throw Refused(Refusal::kInvalidArgument, wire::reason::kSizeMismatch,
                        "header.size_bytes: the blob has " + std::to_string(*size) +
                            " bytes, not " + std::to_string(size_bytes_));
        if (size) return succeed();
        std::optional<Uploads::Known> known;
        if (const auto row = store.upload(upload_id_))
          known =
              Uploads::Known{.digest = row->digest,
                             .size_bytes = static_cast<std::uint64_t>(row->size_bytes),
                             .committed_bytes = static_cast<std::uint64_t>(row->committed_bytes)};
        ask_for_room(known);
      } catch (...) {
        end(to_status(std::current_exception(), "WriteBlob"));
      }
    });
    if (!posted) end(busy_status(services_.draining));
  }

  /// Workers send the results of users, which are always kept.
  void require_quota(WriteContext& write) {
    if (caller_.role == Role::kWorker) return;
    write.queue.require_room_for_bytes(scope_of(caller_), static_cast<std::int64_t>(size_bytes_));
  }

  /// Refuses an upload over a quota before its bytes come. publish() asks again, because other
  /// uploads may end meanwhile.
  void ask_for_room(const std::optional<Uploads::Known>& known) {
    const auto open_on_file_thread = [this, known] {
      try {
        open(known);
      } catch (...) {
        end(to_status(std::current_exception(), "WriteBlob"));
      }
    };
    const bool posted =
        services_.writer.post({.body = [this](WriteContext& write) { require_quota(write); },
                               .done =
                                   [this, open_on_file_thread](const std::exception_ptr& error) {
                                     if (error) return end(to_status(error, "WriteBlob"));
                                     if (!services_.files.post(open_on_file_thread))
                                       end(busy_status(services_.draining));
                                   }});
    if (!posted) end(busy_status(services_.draining));
  }

  void open(const std::optional<Uploads::Known>& known) {
    session_ = services_.uploads.open(
        {.upload_id = upload_id_, .digest = digest_, .size_bytes = size_bytes_, .known = known},
        services_.upload_room_bytes(), this);
    const std::uint64_t offset = session_->offset;
    if (offset == size_bytes_) return publish();
    // The row must not promise more than the file holds, or the caller would always continue too
    // late.
    if (known && offset < known->committed_bytes) return remember([this] { read(); });
    read();
  }

  void publish() {
    {
      const std::lock_guard lock(session_->mutex);
      require_owned();
      services_.uploads.publish(*session_);
    }
    const bool posted = services_.writer.post(
        {.body =
             [this](WriteContext& write) {
               if (write.store.blob_state(digest_) == BlobState::kDeleting)
                 throw Refused(Refusal::kUnavailable, wire::reason::kServerBusy,
                               "an old copy of this blob is being removed; upload it again")
                     .retry_in(1'000);
               if (!services_.blobs.has(digest_))
                 throw Refused(Refusal::kUnavailable, wire::reason::kServerBusy,
                               "this blob was removed as garbage just now; upload it again")
                     .retry_in(1'000);
               // Over a quota the file gets its row, too, so that the next collection removes it.
               write.store.insert_blob(digest_, static_cast<std::int64_t>(size_bytes_),
                                       write.now.wall_ms);
               write.store.delete_upload(upload_id_);
               try {
                 require_quota(write);
                 if (caller_.principal_id > 0)
                   write.store.add_holder(digest_, caller_.principal_id);
               } catch (const Refused&) {
                 over_quota_ = std::current_exception();
               }
             },
         .done =
             [this](const std::exception_ptr& error) {
               if (error) return end(to_status(error, "WriteBlob"));
               if (over_quota_) return end(to_status(over_quota_, "WriteBlob"));
               succeed();
             }});
    if (!posted) end(busy_status(services_.draining));
  }

  void succeed() {
    response_->set_digest(digest_);
    response_->set_size_bytes(size_bytes_);
    end(grpc::Status::OK);
  }

  /// Records how many bytes are on disk, then calls `next`.
  template <class Next>
  void remember(Next next) {
    UploadRow row{.upload_id = upload_id_,
                  .digest = digest_,
                  .size_bytes = static_cast<std::int64_t>(size_bytes_)};
    {
      const std::lock_guard lock(session_->mutex);
      row.committed_bytes = static_cast<std::int64_t>(session_->synced);
    }
    const bool posted =
        services_.writer.post({.body =
                                   [row](WriteContext& write) mutable {
                                     row.touched_ms = write.now.wall_ms;
                                     write.store.save_upload(row);
                                   },
                               .done =
                                   [next, session = session_](const std::exception_ptr& error) {
                                     if (!error) session->is_recorded = true;
                                     next();
                                   }});
    if (!posted) next();
  }

  /// The stream ended before the blob was complete.
  void broken() {
    if (!session_) return end(grpc::Status(grpc::StatusCode::CANCELLED, "the writer has gone"));
    keep_and_end(to_status(Refused(Refusal::kAborted, wire::reason::kOffsetMismatch,
                                   "the stream ended after " + std::to_string(session_->offset) +
                                       " of " + std::to_string(size_bytes_) +
                                       " bytes; continue the upload from there")));
  }

  /// Ends the call. The received bytes are kept for a continuation, unless another stream continues
  /// already.
  void keep_and_end(const grpc::Status& status) {
    bool is_kept = false;
    try {
      if (session_) {
        const std::lock_guard lock(session_->mutex);
        is_kept = session_->owner == this;
        if (is_kept) session_->sync();
      }
    } catch (...) {
      return end(to_status(std::current_exception(), "WriteBlob"));
    }
    if (!is_kept) return end(status);
    remember([this, status] { end(status); });
  }

  Services& services_;
  grpc::CallbackServerContext* context_;
  v1::WriteBlobResponse* response_;
  const Caller caller_;
  const StreamPlace place_;
  std::mutex mutex_;
  bool is_reading_ = false;  ///< the next step follows a message, or the end of the right to it
  std::unique_ptr<grpc::Alarm> pause_;
  v1::WriteBlobRequest message_;
  std::shared_ptr<UploadSession> session_;
  std::string digest_;
  std::string upload_id_;
  std::uint64_t size_bytes_ = 0;
  std::exception_ptr over_quota_;
};

}  // namespace

grpc::ServerReadReactor<v1::WriteBlobRequest>* write_blob(Services& services,
                                                          grpc::CallbackServerContext* context,
                                                          v1::WriteBlobResponse* response,
                                                          const Admission& admission) {
  return new WriteBlobStream(services, context, response, admission);
}

}  // namespace quasi::server
